package camera

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"io"
	"os"
)

// The largest picture that is decoded: a good phone's photograph. It is checked
// from the header, before any memory is taken for pixels.
const (
	MaxPixels = 40_000_000 // pixels
	MaxSide   = 1 << 15    // pixels, width and height; keeps products of two within 32 bits
)

// ErrNotPicture is returned when a file is neither PNG nor JPEG.
var ErrNotPicture = errors.New("neither a PNG nor a JPEG picture")

// ErrTooLarge is returned when a picture has more than MaxPixels, or
// a side longer than MaxSide.
var ErrTooLarge = errors.New("picture too large")

// ReadFile reads a PNG or JPEG picture as a grey frame of its full size (see
// Frame.Fit). What is transparent is white, as on paper. It returns an error that
// wraps ErrNotPicture, ErrTooLarge, an error of package io/fs, or what the decoder
// says about a damaged file.
func ReadFile(path string) (Frame, error) {
	// Opening a FIFO would wait for a writer, so look first.
	if info, err := os.Stat(path); err != nil {
		return Frame{}, fmt.Errorf("read picture: %w", err)
	} else if !info.Mode().IsRegular() {
		return Frame{}, fmt.Errorf("read picture %s: not a file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return Frame{}, fmt.Errorf("read picture: %w", err)
	}
	defer func() { _ = file.Close() }() // only read from
	f, err := decode(file)
	if err != nil {
		return Frame{}, fmt.Errorf("read picture %s: %w", path, err)
	}
	return f, nil
}

// codec is one picture format: its header alone, and all of it.
type codec struct {
	config func(io.Reader) (image.Config, error)
	full   func(io.Reader) (image.Image, error)
}

// decode reads one picture. A decoder that breaks on a damaged file gives an error
// like any other.
func decode(r io.ReadSeeker) (f Frame, err error) {
	defer func() {
		if p := recover(); p != nil {
			f, err = Frame{}, fmt.Errorf("decoder broke: %v", p)
		}
	}()
	c, err := codecOf(r)
	if err != nil {
		return Frame{}, err
	}
	cfg, err := c.config(bufio.NewReader(r))
	if err != nil {
		return Frame{}, err
	}
	if cfg.Width > MaxSide || cfg.Height > MaxSide || cfg.Width*cfg.Height > MaxPixels {
		return Frame{}, fmt.Errorf("%w: %d x %d pixels, at most %d in all and %d each way",
			ErrTooLarge, cfg.Width, cfg.Height, MaxPixels, MaxSide)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Frame{}, err
	}
	img, err := c.full(bufio.NewReader(r))
	if err != nil {
		return Frame{}, err
	}
	if img.Bounds().Empty() {
		return Frame{}, errors.New("picture without pixels")
	}
	return greyOf(img), nil
}

// codecOf tells the format by the file's first bytes, and goes back to them.
func codecOf(r io.ReadSeeker) (codec, error) {
	var magic [4]byte
	if _, err := io.ReadFull(r, magic[:]); err == io.EOF || err == io.ErrUnexpectedEOF {
		return codec{}, ErrNotPicture
	} else if err != nil {
		return codec{}, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return codec{}, err
	}
	switch {
	case bytes.HasPrefix(magic[:], []byte("\x89PNG")):
		return codec{png.DecodeConfig, png.Decode}, nil
	case bytes.HasPrefix(magic[:], []byte("\xff\xd8\xff")):
		return codec{jpeg.DecodeConfig, jpeg.Decode}, nil
	}
	return codec{}, ErrNotPicture
}

// greyOf gives a picture's brightness. Where the picture holds it as a plane of
// its own, as nearly all JPEGs do, that plane is the frame.
func greyOf(img image.Image) Frame {
	b := img.Bounds()
	switch p := img.(type) {
	case *image.Gray:
		return Frame{Pix: p.Pix[p.PixOffset(b.Min.X, b.Min.Y):], Stride: p.Stride, W: b.Dx(), H: b.Dy()}
	case *image.YCbCr:
		return Frame{Pix: p.Y[p.YOffset(b.Min.X, b.Min.Y):], Stride: p.YStride, W: b.Dx(), H: b.Dy()}
	}
	f := Frame{Pix: make([]byte, b.Dx()*b.Dy()), Stride: b.Dx(), W: b.Dx(), H: b.Dy()}
	row := image.NewRGBA(image.Rect(0, 0, f.W, 1)) // draw has a short way for each kind of picture
	for y := range f.H {
		draw.Draw(row, row.Rect, image.White, image.Point{}, draw.Src)
		draw.Draw(row, row.Rect, img, image.Pt(b.Min.X, b.Min.Y+y), draw.Over)
		out := f.Pix[y*f.Stride:][:f.W]
		for x := range out {
			c := row.Pix[4*x:]
			out[x] = color.GrayModel.Convert(color.RGBA{c[0], c[1], c[2], 255}).(color.Gray).Y
		}
	}
	return f
}
