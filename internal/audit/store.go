package audit

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"admitone/internal/office"
)

// The log's rows among those of the API: a row a line, listed by number, and one
// that says where the log ends. That one is the lock: several processes on one
// database append to one chain.
const (
	table   = office.Table("audit")
	list    = "lines"
	headRow = "head"
)

// Append adds a line at the end of the log, in the transaction of the write that it
// tells of, and gives it with its place. It comes last in its transaction: every
// other admin write waits for the head.
func Append(tx office.Tx, l Line) (Line, error) {
	const tries = 3 // two processes begin the log at once, and the later one looks again
	for range tries {
		head, err := headOf(tx)
		if err != nil {
			return l, fmt.Errorf("append to audit log: %w", err)
		}
		l = l.follow(head)
		added, err := put(tx, l)
		if err != nil {
			return l, fmt.Errorf("append to audit log: %w", err)
		}
		if added {
			return l, nil
		}
	}
	return l, errors.New("append to audit log: there is a line behind its end")
}

func put(tx office.Tx, l Line) (added bool, err error) {
	body, err := json.Marshal(l)
	if err != nil {
		return false, err
	}
	id := binary.BigEndian.AppendUint64(nil, l.N)
	added, err = tx.Add(office.Row{Table: table, ID: string(id), List: list, At: int64(l.N), Body: body})
	if err != nil || !added {
		return false, err
	}
	return true, tx.Put(office.Row{Table: table, ID: headRow, Body: []byte(Head{N: l.N, Hash: l.Hash}.String())})
}

func headOf(tx office.Tx) (Head, error) {
	r, found, err := tx.Get(table, headRow)
	if err != nil || !found {
		return Head{}, err
	}
	return ParseHead(string(r.Body))
}

// Page gives up to limit lines in order, after a cursor ("": from the first); next
// is the cursor of the last one given. It returns office.ErrCursor for what is no
// cursor.
func Page(tx office.Tx, after string, limit int) (lines []Line, next string, err error) {
	rows, next, err := tx.Page(table, list, after, limit)
	if err != nil {
		return nil, "", fmt.Errorf("read audit log: %w", err)
	}
	lines = make([]Line, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r.Body, &lines[i]); err != nil {
			return nil, "", fmt.Errorf("read audit log: line %d: %w", r.At, err)
		}
	}
	return lines, next, nil
}
