package main

import (
	"context"
	"time"

	"admitone/hardware/camera"
	"admitone/internal/scan"
)

func pictureCommands() []command {
	return []command{{
		name: "read", args: "FILE...", about: "Read the QR codes in pictures, as a gate does", min: 1, max: -1, flags: noFlags(readPictures),
		help: "Prints one JSON object a line, {\"file\",\"texts\",\"ms\"} for a picture and {\"file\",\"error\"} for\na file that is none, and goes on after errors; the exit code is 1 if there was one.\nPictures are PNG or JPEG, and are read at the size that a gate's frames have.",
	}}
}

// pictureTexts and pictureError are the lines of read; others parse them.
type pictureTexts struct {
	File  string   `json:"file"`
	Texts []string `json:"texts"`
	MS    float64  `json:"ms"` // reading alone, without loading the file
}

type pictureError struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

func readPictures(ctx context.Context, c *call) error {
	failed := false
	for _, file := range c.args {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var line any
		texts, took, err := readPicture(file)
		if err != nil {
			failed, line = true, pictureError{file, err.Error()}
		} else {
			line = pictureTexts{file, texts, float64(took.Microseconds()) / 1000}
		}
		if err := c.out.object(line); err != nil {
			return err
		}
		if err := c.out.w.Flush(); err != nil { // each line as soon as it is known
			return err
		}
	}
	if failed {
		return errTold
	}
	return nil
}

// looks is how many frames a picture is shown for, as if it were held before a
// gate's camera for two seconds: what takes long is spread over frames.
const looks = 30

// readPicture reads one file at the size of a gate's frame, upright or across.
func readPicture(file string) (texts []string, took time.Duration, err error) {
	f, err := camera.ReadFile(file)
	if err != nil {
		return nil, 0, err
	}
	if f.H > f.W {
		f = f.Fit(camera.MaxHeight, camera.MaxWidth)
	} else {
		f = f.Fit(camera.MaxWidth, camera.MaxHeight)
	}
	began := time.Now()
	// A reader of its own: what others show is not looked for in this one.
	r := scan.New(scan.Options{})
	for range looks {
		texts, err = r.Read(scan.Frame{Pix: f.Pix, Stride: f.Stride, W: f.W, H: f.H})
		if len(texts) > 0 || err != nil {
			break
		}
	}
	if texts == nil {
		texts = []string{}
	}
	return texts, time.Since(began), err
}
