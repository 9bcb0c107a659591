package publish

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

const (
	// MaxLine is in bytes: some 700,000 elements.
	MaxLine = 64 << 20
	// maxNFT leaves 64 KiB for other fields: a fragment's nft text travels in one message.
	maxNFT = client.MaxMessage - 64<<10
)

type lines struct {
	r   *bufio.Reader
	max int
	// the number of the last line, from 1
	n int
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), max: limit}
}

type lineTooLong struct{ max int }

func (e *lineTooLong) Error() string {
	return fmt.Sprintf("the line is longer than %d bytes: split the fragment, or send a snapshot and then patches", e.max)
}

// next skips blank lines, and a line that is too long with an error.
//
// Possible errors: io.EOF, *lineTooLong, errors of the reader.
func (l *lines) next() ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(bytes.TrimSuffix(part, []byte{'\n'})) > l.max {
			long, line = true, nil
		}
		if !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !long) {
			return nil, err
		}
		l.n++
		if long {
			return nil, &lineTooLong{l.max}
		}
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			return trimmed, nil
		}
		line = line[:0]
	}
}

var errEmpty = errors.New("the update is empty: want one of snapshot, patch and withdraw")

// decode returns the id with an error too, if possible.
func decode(line []byte) (*weftv1.PublishRequest, *uint64, error) {
	req := &weftv1.PublishRequest{}
	if err := protojson.Unmarshal(line, req); err != nil {
		return nil, findID(line), fmt.Errorf("malformed update %s", jsonError(err))
	}
	id := req.GetId()
	switch u := req.GetUpdate().(type) {
	case *weftv1.PublishRequest_Snapshot:
		if len(u.Snapshot.GetNft()) > maxNFT {
			return nil, &id, fmt.Errorf("snapshot of %s: nft has %d bytes: at most %d can be sent, larger content comes as tables", u.Snapshot.GetName(), len(u.Snapshot.GetNft()), maxNFT)
		}
	case *weftv1.PublishRequest_Patch, *weftv1.PublishRequest_Withdraw:
	default:
		return nil, &id, errEmpty
	}
	if req.GetMore() {
		return nil, &id, errors.New("more is for gRPC: send the whole snapshot in one line, it is sent on in parts")
	}
	return req, &id, nil
}

// protojson's places are in the input; it varies the space after "proto:" on purpose.
func jsonError(err error) string {
	s := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	s = strings.TrimPrefix(s, "proto: ")
	s = strings.TrimPrefix(s, "syntax error ")
	return strings.Replace(s, "(line 1:", "(column ", 1)
}

func findID(line []byte) *uint64 {
	var head struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(line, &head) != nil {
		return nil
	}
	id, err := strconv.ParseUint(strings.Trim(string(head.ID), `"`), 10, 64)
	if err != nil {
		return nil
	}
	return &id
}

type answer struct {
	ID         *uint64           `json:"id,omitempty"`
	Revision   uint64            `json:"revision,omitempty"`
	Line       int               `json:"line,omitempty"`
	Error      string            `json:"error,omitempty"`
	Violations []json.RawMessage `json:"violations,omitempty"`
}

func (a *answer) refuse(line int, err error) {
	a.Line, a.Error = line, err.Error()
	var rejected *client.RejectedError
	if !errors.As(err, &rejected) {
		return
	}
	for _, v := range rejected.Violations {
		if b, err := protojson.Marshal(v); err == nil {
			a.Violations = append(a.Violations, b)
		}
	}
}

func (a *answer) write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(a)
}
