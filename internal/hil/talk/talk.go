// Package talk is what the host and the program inside an emulated board say to
// each other: JSON objects, one a line, over the board's console. A reply stands
// behind Mark, so that what the kernel prints between two lines does no harm.
package talk

import "time"

// Mark begins a line that is a reply.
const Mark = "hil:"

// Op says what a request asks for; each names the fields that it uses.
type Op string

// The operations.
const (
	Start   Op = "start"   // Argv, Path, Number: starts a program as that user, its output appended to Path; replies PID
	Own     Op = "own"     // Argv, Number: gives files, and what is below them, to that user
	Run     Op = "run"     // Argv, Number, Wait: as that user runs a program to its end; replies Code and Data, its output
	Signal  Op = "signal"  // PIDs, Number: one right after the other
	Exit    Op = "exit"    // PID, Wait: waits for the end of a started program; replies Code
	Await   Op = "await"   // Path, Offset, Words, Wait: waits for a line with all the words from Offset on; replies Line and Offset, where the next begins
	Read    Op = "read"    // Path: replies Data, packed by gzip
	Write   Op = "write"   // Path, Data, Number: a file with that mode
	List    Op = "list"    // replies Processes
	Show    Op = "show"    // Path, Argv[0], Words[0]: plays a PNG file to a video output, in a pixel format; the picture of one that plays already is changed
	Hide    Op = "hide"    // ends what Show began and closes the video output
	Control Op = "control" // Path, Words[0], Number: sets a video device's control by its name
	Timings Op = "timings" // Argv: sets video devices to 1280x720 at 24 frames a second
	Formats Op = "formats" // Path: replies Words, the pixel formats that a camera offers
	Off     Op = "off"     // ends the machine
)

// Request goes to the board.
type Request struct {
	ID     int           `json:"id"`
	Op     Op            `json:"op"`
	Argv   []string      `json:"argv,omitempty"`
	Path   string        `json:"path,omitempty"`
	Words  []string      `json:"words,omitempty"`
	Data   []byte        `json:"data,omitempty"`
	PID    int           `json:"pid,omitempty"`
	PIDs   []int         `json:"pids,omitempty"`
	Number int           `json:"number,omitempty"`
	Offset int64         `json:"offset,omitempty"` // bytes
	Wait   time.Duration `json:"wait,omitempty"`   // how long at most
}

// Reply comes from the board. ID 0 is the first one, unasked: it is up.
type Reply struct {
	ID        int       `json:"id"`
	Error     string    `json:"error,omitempty"`
	PID       int       `json:"pid,omitempty"`
	Code      int       `json:"code,omitempty"` // exit code, or the signal's number below 0
	Line      string    `json:"line,omitempty"`
	Offset    int64     `json:"offset,omitempty"`
	Data      []byte    `json:"data,omitempty"`
	Words     []string  `json:"words,omitempty"`
	Processes []Process `json:"processes,omitempty"`
}

// Process is one that runs on the board, or stands still.
type Process struct {
	PID    int      `json:"pid"`
	Parent int      `json:"parent"`
	State  string   `json:"state"` // as in /proc/PID/stat: R, S, D, T, Z …
	Argv   []string `json:"argv"`
	Files  int      `json:"files"` // open ones
	RSS    int64    `json:"rss"`   // bytes
}
