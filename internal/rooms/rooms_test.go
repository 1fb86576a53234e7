package rooms

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "admitone/"

// may says, per package, which of ours it may import. A name that ends in "/..."
// stands for everything below it.
var may = map[string][]string{
	"internal/ticket":                 {},
	"internal/kv":                     {},
	"internal/kv/kvtest":              {"internal/kv"},
	"internal/boltfile":               {"internal/kv"},
	"internal/seen":                   {},
	"internal/seen/kvseen":            {"internal/seen", "internal/kv"},
	"internal/seen/pgseen":            {"internal/seen"},
	"internal/seen/seentest":          {"internal/seen", "internal/kv"},
	"internal/scan":                   {},
	"internal/scan/scanbench":         {"internal/scan", "internal/qr", "hardware/camera"},
	"internal/qr":                     {},
	"internal/pictures":               {},
	"internal/pictures/demo":          {"internal/pictures", "internal/qr", "internal/ticket"},
	"internal/pictures/gen":           {"internal/pictures/demo", "internal/ticket"},
	"internal/gate":                   {"internal/ticket"},
	"internal/gatestore":              {"internal/ticket", "internal/seen/...", "internal/kv"},
	"internal/wire":                   {"internal/ticket"},
	"internal/wire/broker":            {"internal/wire", "internal/ticket"},
	"internal/wire/wiretest":          {"internal/wire", "internal/ticket"},
	"internal/ledger":                 {"internal/ticket", "internal/seen"},
	"internal/ledgerstore":            {"internal/ledger", "internal/office", "internal/ticket", "internal/seen/...", "internal/kv", "internal/ledgerstore/tables"},
	"internal/ledgerstore/ledgertest": {"internal/ledger", "internal/office", "internal/ticket", "internal/seen", "internal/kv"},
	"internal/office":                 {"internal/ticket", "internal/seen"},
	"internal/acquirer":               {"internal/office"},
	"internal/audit":                  {"internal/office"},
	"internal/ledgerhttp":             {"internal/ledger", "internal/audit", "internal/office", "internal/qr", "internal/ticket", "internal/seen", "internal/strictjson", "internal/outbox", "internal/shop", "internal/webhook"},
	"internal/strictjson":             {},
	"internal/webhook":                {},
	"internal/reload":                 {},
	"internal/shop":                   {"internal/office", "internal/seen", "internal/strictjson", "internal/ticket"},
	"internal/outbox":                 {"internal/office", "internal/webhook"},
	"internal/ledgerstore/pgschema":   {},
	"internal/ledgerstore/tables":     {},
	"internal/ledgerstore/pgstore":    {"internal/ledger", "internal/office", "internal/ticket", "internal/seen/...", "internal/kv", "internal/ledgerstore/pgschema", "internal/ledgerstore/tables"},
	"internal/pgtest":                 {},
	"internal/control":                {"internal/ticket"},
	"internal/config":                 {"internal/webhook"},
	"internal/alive":                  {},
	"internal/crashtest":              {"internal/..."},
	"internal/crashtest/check":        {"internal/boltfile", "internal/crashtest"},
	"internal/alive/alivetest":        {},
	"internal/hil":                    {"internal/hil/talk"},
	"internal/hil/guest":              {"internal/hil/talk"},
	"internal/hil/talk":               {},
	"internal/lab":                    {"internal/acquirer", "internal/config", "internal/control", "internal/ledgerhttp", "internal/qr", "internal/ticket", "internal/wire", "internal/pictures/demo"},
	"internal/rooms":                  {},
	"internal/simtest":                {"internal/...", "hardware/..."},
	"hardware/camera":                 {},
	"hardware/reader":                 {},
	"hardware/turnstile":              {},
	"cmd/gated":                       {"internal/...", "hardware/..."},
	"cmd/ledgerd":                     {"internal/..."},
	"cmd/gatectl":                     {"internal/...", "hardware/camera"},
}

// tests is what the tests of a package may import besides what the package may.
var tests = map[string][]string{
	"internal/audit":               {"internal/kv", "internal/ledgerstore"},
	"internal/boltfile":            {"internal/kv/kvtest", "internal/seen/..."},
	"internal/kv":                  {"internal/kv/kvtest"},
	"internal/seen/kvseen":         {"internal/boltfile", "internal/seen/seentest"},
	"internal/ledgerstore/pgstore": {"internal/pgtest", "internal/audit", "internal/ledgerstore/...", "internal/kv"},
	"internal/seen/pgseen":         {"internal/seen/...", "internal/kv", "internal/pgtest", "internal/ledgerstore/pgschema"},
	"internal/gate":                {"internal/gatestore", "internal/kv"},
	"internal/gatestore":           {"internal/boltfile"},
	"internal/lab":                 {"internal/boltfile", "internal/gatestore", "internal/ledger", "internal/office"},
	"internal/ledger":              {"internal/kv", "internal/boltfile", "internal/ledgerstore/...", "internal/office"},
	"internal/ledgerstore":         {"internal/boltfile", "internal/ledgerstore/ledgertest"},
	"internal/ledgerhttp":          {"internal/kv", "internal/ledgerstore/..."},
	"internal/office":              {"internal/kv", "internal/boltfile", "internal/ledgerstore", "internal/ledgerstore/pgstore", "internal/pgtest", "internal/acquirer", "internal/config", "internal/ledgerhttp"},
	"internal/outbox":              {"internal/kv", "internal/ledgerstore/...", "internal/pgtest"},
	"internal/shop":                {"internal/kv", "internal/ledger", "internal/ledgerstore/...", "internal/pgtest"},
	"internal/pictures":            {"internal/scan", "internal/ticket", "hardware/camera"},
	"internal/pictures/demo":       {"internal/scan", "hardware/camera"},
	"internal/scan":                {"internal/qr", "internal/pictures", "hardware/camera"},
	"internal/qr":                  {"internal/ticket", "internal/scan"},
	"internal/wire":                {"internal/wire/...", "internal/gatestore", "internal/kv"},
	"internal/wire/broker":         {"internal/wire/..."},
}

// only says who may import a library: what each hides is changed in one place.
var only = map[string][]string{
	"go.etcd.io/bbolt":                    {"internal/boltfile"},
	"github.com/nats-io/nats.go":          {"internal/wire"},
	"github.com/nats-io/nats-server":      {"internal/wire/broker"},
	"github.com/jackc/pgx":                {"internal/seen/pgseen", "internal/ledgerstore/pgschema", "internal/ledgerstore/pgstore", "internal/pgtest"},
	"github.com/pressly/goose":            {"internal/ledgerstore/pgschema"},
	"github.com/blackjack/webcam":         {"hardware/camera"},
	"github.com/makiuchi-d/gozxing":       {"internal/scan", "internal/scan/scanbench", "internal/qr"},
	"github.com/veraison/go-cose":         {"internal/ticket"},
	"github.com/pelletier/go-toml":        {"internal/config", "cmd/gatectl"},
	"github.com/prometheus/client_golang": {"internal/ledgerhttp"},
	"github.com/hanwen/go-fuse":           {"internal/crashtest"},
	"github.com/coreos/go-systemd":        {"internal/alive"},
	"github.com/standard-webhooks":        {"internal/webhook"},
	"github.com/stianeikeland/go-rpio":    {"hardware/turnstile"},
	"github.com/warthog618/go-gpiocdev":   {"hardware/turnstile"},
}

type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,TestImports,XTestImports"}, args...)...)
	cmd.Dir = "../.."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func allowed(name string, by []string) bool {
	return slices.ContainsFunc(by, func(a string) bool {
		below, all := strings.CutSuffix(a, "/...")
		return a == name || all && (name == below || strings.HasPrefix(name, below+"/"))
	})
}

func TestImports(t *testing.T) {
	for _, p := range list(t, "./...") {
		room := strings.TrimPrefix(p.ImportPath, module)
		mine, known := may[room]
		if !known {
			t.Errorf("package %s is not in the table", room)
			continue
		}
		check := func(imports, more []string) {
			for _, i := range imports {
				ours, is := strings.CutPrefix(i, module)
				if is && ours != room && !allowed(ours, mine) && !allowed(ours, more) {
					t.Errorf("%s imports %s, which the table does not allow", room, ours)
				}
				for lib, by := range only {
					if (i == lib || strings.HasPrefix(i, lib+"/")) && !allowed(room, by) {
						t.Errorf("%s imports %s, which only %v may", room, i, by)
					}
				}
			}
		}
		check(p.Imports, nil)
		check(p.TestImports, tests[room])
		check(p.XTestImports, tests[room])
	}
}

// A gate links no broker: what is not in its binary cannot fail there.
func TestGatedLinksNoBroker(t *testing.T) {
	for _, p := range list(t, "-deps", "./cmd/gated") {
		if strings.Contains(p.ImportPath, "nats-server") || strings.HasSuffix(p.ImportPath, "internal/wire/broker") {
			t.Errorf("cmd/gated links %s", p.ImportPath)
		}
	}
}
