package ledgerhttp

import (
	_ "embed" // of the document
	"net/http"
)

// openAPI describes the API: OpenAPI 3.1. The package's tests hold the handlers to
// it, and it to the handlers.
//
//go:embed openapi/openapi.yaml
var openAPI []byte

// description is GET /openapi.yaml. Nothing in it is secret.
func description(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml") // RFC 9512
	w.Header().Set("Cache-Control", "no-cache")
	w.Write(openAPI)
}
