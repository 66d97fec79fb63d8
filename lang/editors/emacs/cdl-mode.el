;;; cdl-mode.el --- CDL, the contact description language -*- lexical-binding: t -*-

;; Installed with CDL this file is found by itself on Debian; elsewhere add its folder to `load-path' and
;; (require 'cdl-mode) to your init file.  M-x eglot starts the language server, `cdl lsp'.

;;; Code:

(defgroup cdl nil "The contact description language." :group 'languages)

(defcustom cdl-program "cdl"
  "The program cdl; the language server is `cdl lsp'."
  :type 'string)

(defconst cdl--keywords
  '("use" "as" "fn" "let" "param" "model" "part" "dof" "history" "domain" "field" "at" "boundary" "obstacle"
    "rod" "shape" "kinetic" "potential" "dissipation" "force" "constraint" "when" "stop" "experiment" "run" "with" "sweep"
    "measure" "expect" "within" "plot" "against" "save" "for" "where" "if" "then" "else" "cases" "otherwise"
    "and" "or" "not" "in" "true" "false"))

(defvar cdl-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?# "<" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?_ "w" table)
    (modify-syntax-entry ?' "." table)
    table))

(defun cdl-indent-line ()
  "Indent the line by four columns for each open bracket."
  (let* ((from-end (- (point-max) (point)))
         (depth (save-excursion
                  (back-to-indentation)
                  (max 0 (- (car (syntax-ppss)) (if (looking-at "[]})]") 1 0))))))
    (indent-line-to (* 4 depth))
    (when (> (- (point-max) from-end) (point))
      (goto-char (- (point-max) from-end)))))

;;;###autoload
(define-derived-mode cdl-mode prog-mode "CDL"
  "Major mode for CDL, the contact description language."
  (setq-local indent-tabs-mode nil)
  (setq-local comment-start "# ")
  (setq-local comment-start-skip "#+\\s-*")
  (setq-local indent-line-function #'cdl-indent-line)
  (setq-local font-lock-defaults
              `((("##.*$" 0 font-lock-doc-face t)
                 (,(regexp-opt cdl--keywords 'words) . font-lock-keyword-face)
                 ("\\<\\(?:model\\|experiment\\|constraint\\|part\\|fn\\|rod\\|shape\\)\\s-+\\(\\w+\\)"
                  1 font-lock-function-name-face)))))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.cdl\\'" . cdl-mode))

;;;###autoload
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs
               (cons 'cdl-mode (lambda (&rest _) (list cdl-program "lsp")))))

(provide 'cdl-mode)
;;; cdl-mode.el ends here
