package ticket

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
)

func batchKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

// batches gives signed parts of one export, the last one empty.
func batches(t *testing.T, export uint64, n int) (signed [][]byte) {
	t.Helper()
	for i := range n {
		b := Batch{Device: "a", Place: "North", Export: export, Part: i + 1, Made: 1, Run: 7, From: uint64(1 + 2*i), Records: [][]byte{{1}, {2}}}
		if i == n-1 {
			b.Last, b.From, b.Records = true, 0, nil
		}
		s, err := SignBatch(b, batchKey(1))
		if err != nil {
			t.Fatal(err)
		}
		signed = append(signed, s)
	}
	return signed
}

func batchFile(t *testing.T, parts ...[]byte) string {
	t.Helper()
	var b bytes.Buffer
	w := NewBatchWriter(&b)
	for _, p := range parts {
		if err := w.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestBatchFile(t *testing.T) {
	p, q := batches(t, 5, 3), batches(t, 6, 3)
	parts, err := ReadBatches(strings.NewReader(batchFile(t, p...)))
	if err != nil || len(parts) != 3 || parts[1].From != 3 || !bytes.Equal(parts[1].Signed, p[1]) || !parts[2].Last {
		t.Fatalf("%+v, %v", parts, err)
	}
	whole := batchFile(t, p...)
	for name, c := range map[string]struct {
		file string
		want string
	}{
		"nothing":         {"", "no file of exported records"},
		"another file":    {"id,ticket\n", "no file of exported records"},
		"no parts":        {batchHead + "\n", "cut off"},
		"a part missing":  {batchFile(t, p[0], p[2]), "part 3 stands where part 2 belongs"},
		"cut off":         {batchFile(t, p[0], p[1]), "cut off"},
		"cut in a part":   {whole[:len(whole)-20], "part 3 cannot be read"},
		"another export":  {batchFile(t, p[0], q[1], q[2]), "part 2 is of another export"},
		"twice":           {batchFile(t, append(p, p...)...), "part 1 stands where part 4 belongs"},
		"junk for a part": {batchHead + "\n!!\n", "part 1 cannot be read"},
	} {
		if _, err := ReadBatches(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ReadBatches(strings.NewReader("x")); !errors.Is(err, ErrNoBatches) {
		t.Errorf("%v, want ErrNoBatches", err)
	}
}

// TestBatchIsSigned: every changed byte shows, and another's key does not open it.
func TestBatchIsSigned(t *testing.T) {
	signed := batches(t, 5, 2)[0]
	public := batchKey(1).Public().(ed25519.PublicKey)
	if b, err := OpenBatch(signed, public); err != nil || b.Device != "a" || len(b.Records) != 2 {
		t.Fatalf("%+v, %v", b, err)
	}
	if _, err := OpenBatch(signed, batchKey(2).Public().(ed25519.PublicKey)); err == nil {
		t.Error("another's key opened it")
	}
	for i := range signed {
		bad := bytes.Clone(signed)
		bad[i] ^= 1
		if _, err := OpenBatch(bad, public); err == nil {
			t.Errorf("byte %d changed, and it opens", i)
		}
	}
	large := Batch{Device: "a", Part: 1, From: 1, Records: make([][]byte, MaxBatchRecords+1)}
	if _, err := SignBatch(large, batchKey(1)); err == nil {
		t.Error("a part of too many records was signed")
	}
}
