package main

import (
	"context"
	"crypto/ed25519"
	"sync"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
	"admitone/internal/wire"
	"admitone/internal/wire/broker"
)

// service is the ledger as the wire sees it: the same messages, of which the wire
// owns the encoding and the ledger the meaning.
type service struct {
	*ledger.Ledger
	key ed25519.PrivateKey

	mu      sync.Mutex
	version uint64
	signed  []byte
}

func first(f *ledger.First) *wire.First {
	if f == nil {
		return nil
	}
	return &wire.First{Claim: f.Claim, Place: f.Place, Time: f.Time, State: f.State}
}

func (s *service) Ask(ctx context.Context, from ticket.Source, m wire.Ask) (wire.AskReply, error) {
	r, err := s.Ledger.Ask(ctx, from, ledger.Ask{Claim: m.Claim, Unit: m.Unit, Records: m.Records})
	return wire.AskReply{Claim: r.Claim, Answer: r.Answer, First: first(r.First), Time: r.Time, Records: r.Records}, err
}

func (s *service) Peek(ctx context.Context, from ticket.Source, m wire.Peek) (wire.PeekReply, error) {
	r, err := s.Ledger.Peek(ctx, from, ledger.Peek{Unit: m.Unit})
	return wire.PeekReply{Reason: r.Reason, First: first(r.First), Time: r.Time, Records: r.Records}, err
}

func (s *service) Upload(ctx context.Context, from ticket.Source, m wire.Upload) (wire.UploadReply, error) {
	r, err := s.Ledger.Upload(ctx, from, ledger.Upload{Run: m.Run, From: m.From, Records: m.Records})
	return wire.UploadReply{High: r.High, SetAside: r.SetAside, Time: r.Time}, err
}

func (s *service) Hello(ctx context.Context, from ticket.Source, m wire.Hello) (wire.HelloReply, error) {
	r, err := s.Ledger.Hello(ctx, from, ledger.Hello{Place: m.Place, Runs: m.Runs, Cursors: m.Cursors})
	return wire.HelloReply{High: r.High, Heads: r.Heads, Time: r.Time, Named: r.Named}, err
}

func (s *service) Read(ctx context.Context, st ticket.Stream, after uint64, limit, maxBytes int) (wire.FetchReply, error) {
	r, err := s.Ledger.Read(ctx, st, after, limit, maxBytes)
	return wire.FetchReply{Base: r.Base, Head: r.Head, From: r.From, Records: r.Records, Held: r.Held}, err
}

func (s *service) Beyond(ctx context.Context, st ticket.Stream, after uint64, limit, maxBytes int) (wire.FetchReply, error) {
	r, err := s.Ledger.Beyond(ctx, st, after, limit, maxBytes)
	return wire.FetchReply{Base: r.Base, Head: r.Head, From: r.From, Records: r.Records}, err
}

func (s *service) Heard(from ticket.Source, h wire.Head) {
	s.Ledger.Heard(from, ledger.Head{
		Run: h.Run, Pos: h.Pos, Place: h.Place, Link: h.Link, Clock: h.Clock, Mode: h.Mode, Time: h.Time, Note: h.Note,
	})
}

// GateList signs the list of devices. The same devices give the same bytes, in
// whichever process of several: what is signed has the version of the store.
func (s *service) GateList(ctx context.Context) ([]byte, error) {
	entries, version, err := s.Ledger.GateList(ctx)
	if err != nil {
		return nil, err
	}
	version = max(version, 1) // of a list of none
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.signed != nil && version == s.version {
		return s.signed, nil
	}
	l := broker.GateList{Version: version}
	for _, e := range entries {
		l.Devices = append(l.Devices, broker.Device{Device: e.Device, Key: e.Key, Place: e.Place, Role: e.Role, State: e.State})
	}
	signed, err := l.Sign(s.key)
	if err != nil {
		return nil, err
	}
	s.version, s.signed = version, signed
	return signed, nil
}
