autocmd BufNewFile,BufRead *.cdl setfiletype cdl
