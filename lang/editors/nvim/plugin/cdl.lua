-- Neovim: starts `cdl lsp` for files of CDL.  Copy nvim/ and vim/ into ~/.config/nvim, or install CDL: then this
-- file lies in a folder that Neovim reads by itself.  vim.g.cdl_path names another program.
if vim.g.loaded_cdl_lsp then
  return
end
vim.g.loaded_cdl_lsp = true

vim.api.nvim_create_autocmd("FileType", {
  pattern = "cdl",
  callback = function(args)
    local program = vim.g.cdl_path or "cdl"
    if vim.fn.executable(program) == 0 then
      return
    end
    vim.bo[args.buf].commentstring = "# %s"
    vim.lsp.start({
      name = "cdl",
      cmd = { program, "lsp" },
      root_dir = vim.fs.dirname(vim.api.nvim_buf_get_name(args.buf)),
    }, { bufnr = args.buf })
    if vim.lsp.inlay_hint and vim.lsp.inlay_hint.enable then
      pcall(vim.lsp.inlay_hint.enable, true, { bufnr = args.buf })
    end
  end,
})
