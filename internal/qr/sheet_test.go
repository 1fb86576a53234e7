package qr

import (
	"bytes"
	"encoding/xml"
	"image"
	"image/color"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func sheet(t *testing.T, items ...Item) string {
	t.Helper()
	var out strings.Builder
	if err := Sheet(&out, items); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const drawScale = 3 // pixels a module

// draw paints the rectangles of path data as a browser would.
func draw(t *testing.T, side int, path string) *image.Gray {
	t.Helper()
	const scale = drawScale
	img := image.NewGray(image.Rect(0, 0, side*scale, side*scale))
	for i := range img.Pix {
		img.Pix[i] = 0xff
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	rest := regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`).ReplaceAllStringFunc(path, func(m string) string {
		p := regexp.MustCompile(`\d+`).FindAllString(m, -1)
		x, y, n := number(p[0]), number(p[1]), number(p[2])
		if p[2] != p[4] {
			t.Errorf("%s does not close", m)
		}
		for py := y * scale; py < (y+1)*scale; py++ {
			for px := x * scale; px < (x+n)*scale; px++ {
				if img.GrayAt(px, py).Y == 0 {
					t.Fatalf("%s paints twice", m)
				}
				img.SetGray(px, py, color.Gray{})
			}
		}
		return ""
	})
	if rest != "" {
		t.Fatalf("path data with %q", rest)
	}
	return img
}

func TestSheetSymbolsReadBack(t *testing.T) {
	texts := []string{"A1:FIRST", "A1:" + strings.Repeat("X9 $%*+-./:", 18), "lower case, in bytes"}
	var items []Item
	for _, s := range texts {
		items = append(items, Item{Text: s, Caption: "Row 1"})
	}
	html := sheet(t, items...)
	svg := regexp.MustCompile(`viewBox="0 0 (\d+) (\d+)".*?<path d="([^"]*)"`).FindAllStringSubmatch(html, -1)
	if len(svg) != len(texts) {
		t.Fatalf("%d symbols, want %d", len(svg), len(texts))
	}
	for i, m := range svg {
		side, err := strconv.Atoi(m[1])
		if err != nil || m[1] != m[2] {
			t.Fatalf("view box %s × %s, %v", m[1], m[2], err)
		}
		drawn := draw(t, side, m[3])
		if got, _ := read(t, drawn); got != texts[i] {
			t.Errorf("symbol %d reads as %q, want %q", i, got, texts[i])
		}
		if want, err := Image(texts[i], drawScale); err != nil || !bytes.Equal(drawn.Pix, want.Pix) {
			t.Errorf("symbol %d is not where the picture has it (%v)", i, err)
		}
	}
}

func TestSheetEscapesCaptions(t *testing.T) {
	evil := "</figcaption><script>alert(1)</script>\" onload='x' &amp; {{.}} \x00 Süd"
	html := sheet(t, Item{Text: "A1:X", Caption: evil}, Item{Text: "A1:Y", Caption: "two\nlines"})
	if strings.Contains(html, "<script") || strings.Count(html, "<figcaption>") != 2 || strings.Contains(html, "onload='") {
		t.Errorf("a caption is markup:\n%s", html)
	}
	for _, want := range []string{"&lt;script&gt;", "&amp;amp;", "Süd", "two\nlines", "{{.}}"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in\n%s", want, html)
		}
	}
}

// The sheet is one well-formed file that refers to nothing else.
func TestSheetStandsAlone(t *testing.T) {
	html := sheet(t, Item{Text: "A1:X", Caption: "x"})
	for _, word := range []string{"http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"} {
		if strings.Contains(strings.ReplaceAll(html, `xmlns="http://www.w3.org/2000/svg"`, ""), word) {
			t.Errorf("the sheet has %q", word)
		}
	}
	for _, want := range []string{"@page", "break-inside: avoid", "default-src 'none'", "<i></i><i></i><i></i><i></i>"} {
		if !strings.Contains(html, want) {
			t.Errorf("the sheet has no %q", want)
		}
	}
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict = false
	d.AutoClose = xml.HTMLAutoClose
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasSuffix(html, sheetFoot) {
		t.Error("the page does not end")
	}
}

func TestSheetSaysWhichItem(t *testing.T) {
	err := Sheet(io.Discard, []Item{{Text: "A1:X"}, {Text: ""}})
	if err == nil || !strings.Contains(err.Error(), "item 2") {
		t.Errorf("got %v, want item 2 named", err)
	}
	if err := Sheet(full{}, []Item{{Text: "A1:X"}}); err == nil {
		t.Error("a full disk is no error")
	}
	if html := sheet(t); !strings.Contains(html, "<main>") {
		t.Error("an empty sheet is no page")
	}
}
