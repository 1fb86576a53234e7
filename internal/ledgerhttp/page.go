package ledgerhttp

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"net/http"
)

//go:embed page/page.html page/page.css page/page.js
var pageFiles embed.FS

// page assembles the operators' page: one self-contained document, and a
// content security policy that lets its own style and script run, lets it call
// this API, and nothing else.
func page() (http.HandlerFunc, error) {
	var parts [3][]byte
	for i, name := range []string{"page.html", "page.css", "page.js"} {
		b, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			return nil, fmt.Errorf("read page: %w", err)
		}
		parts[i] = b
	}
	doc := bytes.Replace(parts[0], []byte("{{STYLE}}"), parts[1], 1)
	doc = bytes.Replace(doc, []byte("{{SCRIPT}}"), parts[2], 1)
	policy := "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" +
		"; style-src '" + cspHash(parts[1]) + "'; script-src '" + cspHash(parts[2]) + "'"
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		w.Write(doc)
	}, nil
}

func cspHash(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
