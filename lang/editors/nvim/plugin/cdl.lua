-- Neovim: starts `cdl lsp` for files of CDL.  Copy nvim/ and vim/ into ~/.config/nvim, or install CDL: then this
-- file lies in a folder that Neovim reads by itself.  vim.g.cdl_path names another program.
if vim.g.loaded_cdl_lsp then
  return
end
vim.g.loaded_cdl_lsp = true

local client -- of a Neovim that does not look after them by itself
vim.api.nvim_create_autocmd("FileType", {
  pattern = "cdl",
  callback = function(args)
    local program = vim.g.cdl_path or "cdl"
    if vim.fn.executable(program) == 0 then
      return
    end
    vim.api.nvim_buf_set_option(args.buf, "commentstring", "# %s")
    local config = {
      name = "cdl",
      cmd = { program, "lsp" },
      root_dir = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(args.buf), ":p:h"),
    }
    if vim.lsp.start then
      vim.lsp.start(config, { bufnr = args.buf })
    else -- before 0.8: one server for all files
      client = client or vim.lsp.start_client(config)
      vim.lsp.buf_attach_client(args.buf, client)
      vim.api.nvim_buf_set_option(args.buf, "omnifunc", "v:lua.vim.lsp.omnifunc") -- as later ones do by themselves
    end
    if vim.lsp.inlay_hint and vim.lsp.inlay_hint.enable then
      pcall(vim.lsp.inlay_hint.enable, true, { bufnr = args.buf })
    end
  end,
})
