package qr

import (
	"bufio"
	"fmt"
	"html/template"
	"io"
	"strings"
)

// Item is one ticket of a sheet.
type Item struct {
	Text    string // what the symbol says
	Caption string // what stands below it; line breaks are kept
}

// The sheet in three parts, so that a sheet of any length streams. html/template
// escapes captions. The policy says that the page loads and runs nothing.
var (
	sheetHead = template.Must(template.New("head").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Tickets</title>
<style>
@page { size: A4; margin: 10mm; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: #000; font: 9pt/1.3 sans-serif; }
main { display: grid; grid-template-columns: repeat(3, 60mm); gap: 5mm; justify-content: center; }
figure { position: relative; width: 60mm; min-height: 76mm; margin: 0; padding: 4mm; text-align: center; break-inside: avoid; }
figure svg { display: block; width: 52mm; height: 52mm; }
figcaption { white-space: pre-line; overflow-wrap: anywhere; }
i { position: absolute; width: 3mm; height: 3mm; border: 0 solid #000; }
i:nth-of-type(1) { top: 0; left: 0; border-width: .2mm 0 0 .2mm; }
i:nth-of-type(2) { top: 0; right: 0; border-width: .2mm .2mm 0 0; }
i:nth-of-type(3) { bottom: 0; left: 0; border-width: 0 0 .2mm .2mm; }
i:nth-of-type(4) { bottom: 0; right: 0; border-width: 0 .2mm .2mm 0; }
@media screen { main { padding: 10mm; } }
</style>
</head>
<body>
<main>
`))
	sheetItem = template.Must(template.New("item").Parse(`<figure>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {{.Side}} {{.Side}}" shape-rendering="crispEdges" role="img" aria-label="QR code"><rect width="{{.Side}}" height="{{.Side}}" fill="#fff"/><path d="{{.Path}}" fill="#000"/></svg>
<figcaption>{{.Caption}}</figcaption>
<i></i><i></i><i></i><i></i>
</figure>
`))
)

const sheetFoot = "</main>\n</body>\n</html>\n"

// Sheet writes a page to print: one self-contained HTML file with the symbols as
// vectors, three in a row of A4, a caption below each and marks to cut along. It
// refers to nothing outside of itself. A text that Encode refuses ends the page
// with an error that says which item it was.
func Sheet(w io.Writer, items []Item) error {
	out := bufio.NewWriter(w)
	if err := sheetHead.Execute(out, nil); err != nil {
		return fmt.Errorf("write sheet: %w", err)
	}
	for i, item := range items {
		if err := writeItem(out, item); err != nil {
			return fmt.Errorf("write sheet: item %d: %w", i+1, err)
		}
	}
	if _, err := out.WriteString(sheetFoot); err != nil {
		return fmt.Errorf("write sheet: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write sheet: %w", err)
	}
	return nil
}

func writeItem(w io.Writer, item Item) error {
	modules, _, err := Encode(item.Text)
	if err != nil {
		return err
	}
	return sheetItem.Execute(w, struct {
		Side          int
		Path, Caption string
	}{len(modules) + 2*QuietZone, path(modules), item.Caption})
}

// path gives the dark modules as SVG path data: one rectangle for each run in a
// row, moved by the quiet zone.
func path(modules Modules) string {
	var d strings.Builder
	for y, row := range modules {
		for x := 0; x < len(row); x++ {
			from := x
			for x < len(row) && row[x] {
				x++
			}
			if n := x - from; n > 0 {
				fmt.Fprintf(&d, "M%d %dh%dv1h-%dz", from+QuietZone, y+QuietZone, n, n)
			}
		}
	}
	return d.String()
}
