package ledgerhttp

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"admitone/internal/ledger"
	"admitone/internal/ticket"
)

// Client calls a ledger. Errors that the ledger told are of type *Problem.
type Client struct {
	// HTTP does the requests; a test or a private certificate may replace it.
	HTTP *http.Client

	// Now dates signed requests.
	Now func() time.Time

	base   *url.URL
	bearer string
	signer ed25519.PrivateKey
}

// clientTime bounds a whole request, so that a ledger that hangs is an error.
const clientTime = time.Minute

// maxAnswer bounds what a client reads of one answer.
const maxAnswer = 64 << 20

// NewClient makes a client of the ledger at a URL. Reads need a bearer key of the
// scope read, admin writes a signing key; either may be absent.
func NewClient(base, bearer string, signer ed25519.PrivateKey) (*Client, error) {
	u, err := url.Parse(strings.TrimSuffix(base, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("call ledger: %q is no URL of a ledger, as in http://127.0.0.1:8080", base)
	}
	return &Client{
		HTTP: &http.Client{Timeout: clientTime}, Now: time.Now,
		base: u, bearer: strings.TrimSpace(bearer), signer: signer,
	}, nil
}

// Conflicts gives one page of conflicts, oldest announcement first; limit 0 is
// the server's default.
func (c *Client) Conflicts(ctx context.Context, after string, limit int) (out ConflictPage, err error) {
	return out, c.get(ctx, pagePath("/v1/conflicts", after, limit), &out)
}

// AllConflicts gives all conflicts, oldest announcement first. It ends with the
// first error.
func (c *Client) AllConflicts(ctx context.Context) iter.Seq2[ledger.Conflict, error] {
	return all(func(after string) ([]ledger.Conflict, string, error) {
		p, err := c.Conflicts(ctx, after, maxPage)
		return p.Conflicts, p.Next, err
	})
}

// Conflict gives one conflict.
func (c *Client) Conflict(ctx context.Context, id string) (out ledger.Conflict, err error) {
	return out, c.get(ctx, "/v1/conflicts/"+url.PathEscape(id), &out)
}

// ConflictsCSV copies the export of all conflicts to w.
func (c *Client) ConflictsCSV(ctx context.Context, w io.Writer) error {
	resp, err := c.do(ctx, http.MethodGet, "/v1/conflicts.csv", "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("export conflicts: %w", err)
	}
	return nil
}

// Acknowledge marks a conflict as dealt with.
func (c *Client) Acknowledge(ctx context.Context, id, note string) (out ledger.Conflict, err error) {
	return out, c.post(ctx, "/v1/conflicts/"+url.PathEscape(id)+"/acknowledge", Acknowledgement{Note: note}, &out)
}

// Alarms gives one page of alarms, oldest first.
func (c *Client) Alarms(ctx context.Context, after string, limit int) (out AlarmPage, err error) {
	return out, c.get(ctx, pagePath("/v1/alarms", after, limit), &out)
}

// AllAlarms gives all alarms, oldest first. It ends with the first error.
func (c *Client) AllAlarms(ctx context.Context) iter.Seq2[ledger.AlarmReport, error] {
	return all(func(after string) ([]ledger.AlarmReport, string, error) {
		p, err := c.Alarms(ctx, after, maxPage)
		return p.Alarms, p.Next, err
	})
}

// Gates lists all devices, ordered by place.
func (c *Client) Gates(ctx context.Context) (out []ledger.Gate, err error) {
	for g, err := range all(func(after string) ([]ledger.Gate, string, error) {
		var p GateList
		err := c.get(ctx, pagePath("/v1/gates", after, maxPage), &p)
		return p.Gates, p.Next, err
	}) {
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

// Stats gives the counts of all events and the state of all gates.
func (c *Client) Stats(ctx context.Context) (out Stats, err error) {
	return out, c.get(ctx, "/v1/stats", &out)
}

// Verdicts gives the last 100 verdicts, newest first.
func (c *Client) Verdicts(ctx context.Context) ([]ticket.Verdict, error) {
	var out VerdictList
	return out.Verdicts, c.get(ctx, "/v1/verdicts", &out)
}

// Ticket gives all that is known of a ticket.
func (c *Client) Ticket(ctx context.Context, f ticket.Format, id ticket.ID) (out ledger.TicketReport, err error) {
	return out, c.get(ctx, "/v1/tickets/"+id.String()+"?format="+f.String(), &out)
}

// Programme gives the programme that holds, without the hash keys of code lists.
func (c *Client) Programme(ctx context.Context) (out ticket.Programme, err error) {
	return out, c.get(ctx, "/v1/programme", &out)
}

// PushProgramme signs and sends a programme to all gates; version 0 takes the
// next one.
func (c *Client) PushProgramme(ctx context.Context, p ticket.Programme) (version uint64, err error) {
	var out Pushed
	err = c.post(ctx, "/v1/programme", p, &out)
	return out.Version, err
}

// CloseEvent ends an event for good.
func (c *Client) CloseEvent(ctx context.Context, event string) error {
	return c.post(ctx, "/v1/events/"+url.PathEscape(event)+"/close", nil, &Closed{})
}

// PutCodes replaces an event's list of code hashes.
func (c *Client) PutCodes(ctx context.Context, event string, hashes []ticket.ID) (out Pushed, err error) {
	var b bytes.Buffer
	for _, id := range hashes {
		b.WriteString(id.String())
		b.WriteByte('\n')
	}
	return out, c.send(ctx, "/v1/codes/"+url.PathEscape(event), "text/plain", b.Bytes(), &out)
}

// Revoke revokes a ticket, or takes that back.
func (c *Client) Revoke(ctx context.Context, f ticket.Format, id ticket.ID, revoked bool) error {
	return c.post(ctx, "/v1/revocations", Revocation{Ticket: id, Format: f.String(), Revoked: &revoked}, &Revocation{})
}

// Release is a supervisor's word that a claim no longer holds its ticket.
func (c *Client) Release(ctx context.Context, claim ticket.ClaimID, note string) error {
	return c.post(ctx, "/v1/releases", Release{Claim: claim, Note: note}, &Release{})
}

// AddGate enrols a device, by its public NKey, at a place.
func (c *Client) AddGate(ctx context.Context, place, publicKey, role string) (out ledger.GateEntry, err error) {
	return out, c.post(ctx, "/v1/gates", NewGate{Place: place, Key: publicKey, Role: role}, &out)
}

// SwapGate lets a spare, by its public NKey, take over a place.
func (c *Client) SwapGate(ctx context.Context, place, spareKey string) (out ledger.GateEntry, err error) {
	return out, c.post(ctx, gatePath(place, "swap"), Spare{Key: spareKey}, &out)
}

// RevokeGate takes a device's key back, named by its id or place.
func (c *Client) RevokeGate(ctx context.Context, name string) (out ledger.GateEntry, err error) {
	return out, c.post(ctx, gatePath(name, "revoke"), nil, &out)
}

// LostGate gives a device up, named by its id or place.
func (c *Client) LostGate(ctx context.Context, name string) (out ledger.GateEntry, err error) {
	return out, c.post(ctx, gatePath(name, "lost"), nil, &out)
}

func gatePath(name, action string) string { return "/v1/gates/" + url.PathEscape(name) + "/" + action }

func pagePath(path, after string, limit int) string {
	q := url.Values{}
	if after != "" {
		q.Set("after", after)
	}
	if limit != 0 {
		q.Set("limit", fmt.Sprint(limit))
	}
	return path + "?" + q.Encode()
}

// all walks the pages of a list; a short page is the last.
func all[T any](page func(after string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := ""; ; {
			list, next, err := page(after)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, x := range list {
				if !yield(x, nil) {
					return
				}
			}
			if len(list) < maxPage {
				return
			}
			after = next
		}
	}
}

func (c *Client) get(ctx context.Context, path string, out any) error {
	resp, err := c.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	return decode(resp, out)
}

// post sends a signed admin write; a nil body is none.
func (c *Client) post(ctx context.Context, path string, body, out any) error {
	if body == nil {
		return c.send(ctx, path, "", nil, out)
	}
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	return c.send(ctx, path, "application/json", b, out)
}

func (c *Client) send(ctx context.Context, path, contentType string, body []byte, out any) error {
	if c.signer == nil {
		return errors.New("call ledger: this needs a signing key, and none was given")
	}
	resp, err := c.do(ctx, http.MethodPost, path, contentType, body)
	if err != nil {
		return err
	}
	return decode(resp, out)
}

// do sends one request, and gives what the ledger told as an error where it was a
// problem.
func (c *Client) do(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("call ledger: %w", err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if method == http.MethodGet {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	} else if err := Sign(r, body, c.signer, c.Now(), NewNonce()); err != nil {
		return nil, fmt.Errorf("sign request: %w", err)
	}
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return nil, fmt.Errorf("call ledger: %w", err)
	}
	if resp.StatusCode >= 300 {
		return nil, problemOf(resp)
	}
	return resp, nil
}

func problemOf(resp *http.Response) error {
	defer resp.Body.Close()
	p := Problem{Title: resp.Status, Status: resp.StatusCode}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil || json.Unmarshal(b, &p) != nil || p.Type == "" {
		return fmt.Errorf("call ledger: %s, and not from a ledger: is the URL right?", resp.Status)
	}
	return &p
}

func decode(resp *http.Response, out any) error {
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out); err != nil {
		return fmt.Errorf("read answer of the ledger: %w", err)
	}
	return nil
}
