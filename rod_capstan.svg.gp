# gnuplot script: draws the numbers beside it
data = "./rod_capstan.svg.csv"
picture = "./rod_capstan.svg"
set terminal svg size 800,500 noenhanced background 'white'
set output picture
set datafile separator ','
set grid
set title "tension of a rod over a drum"
set xlabel "angle"
set offsets 0, 0, graph 0.03, graph 0.03
plot data skip 1 using 1:2 with linespoints title "tension", \
     data skip 1 using 1:3 with linespoints title "rope_law", \
     data skip 1 using 1:4 with linespoints title "thread"
set output
