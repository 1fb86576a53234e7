package scan

import "github.com/makiuchi-d/gozxing/qrcode/decoder"

// mark is a module whose colour is the same in all symbols of a size.
type mark struct {
	x, y uint8
	dark bool
}

// pattern is what a symbol of a size has besides its data.
type pattern struct {
	marks  []mark // finders with their margins, timing
	nodes  []int  // rows and columns of alignment patterns' middles
	timing int    // marks from here on are timing
	few    []mark // enough of the marks to tell which of two warps fits better
}

// maxModules is the side of version 40.
const maxModules = 177

// pattern gives the pattern of a size; it is made once.
func (l *look) pattern(modules int) *pattern {
	p := &l.patterns[(modules-17)/4]
	if p.marks == nil {
		*p = newPattern(modules)
	}
	return p
}

func newPattern(modules int) (p pattern) {
	for _, corner := range [3][2]int{{0, 0}, {modules - 7, 0}, {0, modules - 7}} {
		for y := -1; y < 8; y++ {
			for x := -1; x < 8; x++ {
				mx, my := corner[0]+x, corner[1]+y
				if mx < 0 || my < 0 || mx >= modules || my >= modules {
					continue
				}
				ring := max(abs(x-3), abs(y-3))
				p.marks = append(p.marks, mark{uint8(mx), uint8(my), ring < 2 || ring == 3})
			}
		}
	}
	p.timing = len(p.marks)
	for i := 8; i < modules-8; i++ {
		p.marks = append(p.marks, mark{uint8(i), 6, i%2 == 0}, mark{6, uint8(i), i%2 == 0})
	}
	for i, m := range p.marks {
		if i < p.timing && i%2 == 0 || i >= p.timing && (i-p.timing)/2%(1+modules/50) == 0 {
			p.few = append(p.few, m)
		}
	}
	if v, err := decoder.Version_GetVersionForNumber((modules - 17) / 4); err == nil {
		p.nodes = v.GetAlignmentPatternCenters()
	}
	return p
}

func abs(n int) int { return max(n, -n) }
