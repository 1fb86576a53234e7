package scan

// rect is a part of a picture: x0 <= x < x1, y0 <= y < y1.
type rect struct{ x0, y0, x1, y1 int }

func (r rect) w() int { return r.x1 - r.x0 }
func (r rect) h() int { return r.y1 - r.y0 }

// level is a picture that is made of the frame, with its contrast, and memory for
// both that is kept between frames.
type level struct {
	pic    picture
	memory store
	limits thresholds
	made   bool
}

// levels are the frame, its half and its quarter, made when they are first asked
// for, and one more for parts and for what is blurred or doubled.
type levels struct {
	whole [3]level
	other level
	parts [3]store
	rows  []uint16
	work  int // that making them took
}

func (v *levels) begin(f Frame) {
	for i := range v.whole {
		v.whole[i].made = false
	}
	v.whole[0].pic = picture{pix: f.Pix, stride: f.Stride, step: max(f.Step, 1), w: f.W, h: f.H}
}

// of gives what a rung looks at, with its contrast measured. It is nil where that
// is too small to show a symbol.
func (v *levels) of(g rung, area rect) *level {
	frame := &v.whole[0].pic
	if area.w() < frame.w || area.h() < frame.h || g.scale < 0 {
		at := &v.other
		at.pic = v.scaled(frame.part(area), g.scale)
		return v.measured(at, v.blurred(g, at.pic))
	}
	at := v.level(g.scale)
	if g.smooth && at != nil {
		return v.measured(&v.other, v.blurred(g, at.pic))
	}
	return at
}

// level gives the whole frame divided by scale.
func (v *levels) level(scale int) *level {
	i := scale / 2 // 1, 2, 4
	at := &v.whole[i]
	if !at.made {
		at.made = true
		if i > 0 {
			v.level(scale / 2)
			at.pic = halve(&v.whole[i-1].pic, &at.memory)
			v.work += halving * at.pic.w * at.pic.h
		}
		return v.measured(at, at.pic)
	}
	return at.enough()
}

// scaled is a part of the frame at a rung's scale.
func (v *levels) scaled(p picture, scale int) picture {
	for i := 0; scale > 1; i, scale = i+1, scale/2 {
		p = halve(&p, &v.parts[i])
		v.work += halving * p.w * p.h
	}
	if scale < 0 {
		p = double(&p, &v.parts[0])
		v.work += doubling * p.w * p.h
	}
	return p
}

func (v *levels) blurred(g rung, p picture) picture {
	if g.smooth && p.w >= minSymbol && p.h >= minSymbol {
		v.work += smoothing * p.w * p.h
		return smooth(&p, &v.parts[2], &v.rows)
	}
	return p
}

func (v *levels) measured(at *level, p picture) *level {
	at.pic = p
	if at.enough() == nil {
		return nil
	}
	at.limits.measure(&at.pic)
	v.work += p.w * p.h * measuring / 8
	return at
}

func (at *level) enough() *level {
	if at.pic.w < minSymbol || at.pic.h < minSymbol {
		return nil
	}
	return at
}

// part is a part of a picture, where it lies.
func (p *picture) part(r rect) picture {
	return picture{pix: p.pix[r.y0*p.stride+r.x0*p.step:], stride: p.stride, step: p.step, w: r.w(), h: r.h()}
}
