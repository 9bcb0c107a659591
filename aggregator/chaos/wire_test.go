package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

// The words between the conductor and its publishers: JSON lines, commands to a
// publisher's standard input, replies from its standard output.

// Operations of a command.
const (
	opPut      = "put"      // the fragment as a snapshot on the session
	opPatch    = "patch"    // a patch on the session
	opWithdraw = "withdraw" // take the fragment away on the session
	opApply    = "apply"    // the fragment by a unary call
	opDelete   = "delete"   // take it away by a unary call
	opReopen   = "reopen"   // end the session and the connection, and make new ones
)

// command is one thing that a publisher is to do.
type command struct {
	ID   uint64 `json:"id"`
	Op   string `json:"op"`
	Name string `json:"name,omitempty"`
	// Fragment is what the fragment holds after the command; absent where it
	// is taken away.
	Fragment json.RawMessage `json:"fragment,omitempty"`
	Patch    json.RawMessage `json:"patch,omitempty"`
}

// Kinds of a reply.
const (
	replyReady     = "ready"     // the process is up
	replyCommitted = "committed" // the command's update was acknowledged
	replyRejected  = "rejected"  // it was refused
	replyUnknown   = "unknown"   // it cannot be known
	replySynced    = "synced"    // the session brought a fragment back by itself, or was refused
	replyEnded     = "ended"     // the process is gone; made by the conductor's reader
)

// reply is what a publisher says of a command, or by itself.
type reply struct {
	ID       uint64   `json:"id,omitempty"`
	Kind     string   `json:"kind"`
	Name     string   `json:"name,omitempty"`
	Revision uint64   `json:"revision,omitempty"`
	Reasons  []string `json:"reasons,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// lines writes JSON lines; it is safe for concurrent use.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode line: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.w.Write(append(b, '\n'))
	return err
}

// readLines calls f with each line of r; a last line without an end is left
// out: its writer was killed.
func readLines(r io.Reader, f func([]byte)) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		f(line)
	}
}

func encodeFragment(f *weftv1.Fragment) json.RawMessage {
	b, err := protojson.Marshal(f)
	if err != nil {
		panic(err) // it is the generator's
	}
	return b
}

func decodeFragment(b json.RawMessage) (*weftv1.Fragment, error) {
	if len(b) == 0 {
		return nil, nil
	}
	f := new(weftv1.Fragment)
	return f, protojson.Unmarshal(b, f)
}
