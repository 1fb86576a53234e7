package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"admitone/internal/wire"
)

// How often the ledger is asked for the gate list: it also publishes each change.
const (
	listEvery  = 10 * time.Second
	listSooner = time.Second // while there is none
	listWithin = 3 * time.Second
)

// followList keeps the gate list up to date from the ledger, through a client of
// this very server: at a venue the leaf carries it.
func (b *Broker) followList(ctx context.Context) error {
	conn, err := wire.Dial(ctx, wire.NATSOptions{InProcess: b, Seed: b.seed, Name: b.o.Name + " (list)", Log: b.o.Log, Now: b.o.Now})
	if err != nil {
		return fmt.Errorf("start broker: %w", err)
	}
	defer conn.Close()
	err = conn.Subscribe("ledger.*.gates", "", func(m wire.Msg) { b.take(m.Data) })
	if err != nil {
		return fmt.Errorf("start broker: %w", err)
	}
	id, err := wire.DeviceID(b.public)
	if err != nil {
		return fmt.Errorf("start broker: %w", err)
	}
	connected := conn.Connected()
	for {
		b.askForList(ctx, conn, "broker."+string(id)+".gates")
		b.kick()
		select {
		case <-ctx.Done():
			return nil
		case <-connected:
		case <-time.After(b.listWait()):
		}
	}
}

func (b *Broker) listWait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.version == 0 {
		return listSooner
	}
	return listEvery
}

func (b *Broker) askForList(ctx context.Context, conn wire.Conn, subject string) {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	if signed, err := conn.Request(ctx, subject, nil); err == nil {
		b.take(signed)
	}
}

func (b *Broker) take(signed []byte) {
	if err := b.SetGates(signed); err != nil {
		b.o.Log.Error("gate list refused", "err", err)
	}
}

// SetGates puts a signed gate list in force: devices on it may connect from now
// on, and a connection whose rights it changes is cut, to come back with the new
// ones or not at all. A list no newer than the present one changes nothing.
func (b *Broker) SetGates(signed []byte) error {
	l, err := OpenGateList(signed, b.o.ListKey)
	if err != nil {
		return err
	}
	b.mu.Lock()
	if l.Version <= b.version {
		b.mu.Unlock()
		return nil
	}
	b.version, b.signed = l.Version, signed
	b.changed, b.changeAt = b.register.replace(l), time.Now()
	b.mu.Unlock()
	b.o.Log.Info("gate list in force", "version", l.Version, "devices", len(l.Devices))
	b.kick()
	return b.writeListFile()
}

// kick cuts connections that were admitted before the last list and whose rights
// it changed. It is called again later, for one that was being admitted meanwhile.
func (b *Broker) kick() {
	b.mu.Lock()
	changed, at := b.changed, b.changeAt
	b.mu.Unlock()
	if len(changed) == 0 {
		return
	}
	conns, err := b.srv.Connz(&server.ConnzOptions{Username: true, Limit: maxConns + 1})
	if err != nil {
		b.o.Log.Error("connections could not be listed", "err", err)
		return
	}
	for _, c := range conns.Conns {
		if changed[c.AuthorizedUser] && c.Start.Before(at) {
			// An error says that it is gone already.
			_ = b.srv.DisconnectClientByID(c.Cid)
		}
	}
}

// readListFile puts the list of the last run in force, so that a venue whose
// uplink is down at a restart knows its gates.
func (b *Broker) readListFile() {
	if b.o.ListFile == "" {
		return
	}
	signed, err := os.ReadFile(b.o.ListFile)
	if err == nil {
		var l GateList
		if l, err = OpenGateList(signed, b.o.ListKey); err == nil {
			b.version, b.signed = l.Version, signed
			b.register.replace(l)
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.o.Log.Warn("kept gate list cannot be used, waiting for the ledger's", "err", err)
	}
}

// writeListFile replaces the file in one step: a power cut leaves the old list or
// the new one.
func (b *Broker) writeListFile() error {
	if b.o.ListFile == "" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	dir := filepath.Dir(b.o.ListFile)
	f, err := os.CreateTemp(dir, filepath.Base(b.o.ListFile)+".new*")
	if err != nil {
		return fmt.Errorf("keep gate list: %w", err)
	}
	defer os.Remove(f.Name()) // gone once renamed
	_, err = f.Write(b.signed)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), b.o.ListFile)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("keep gate list: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
