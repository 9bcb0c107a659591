package admission

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weft-proxy/weft/aggregator/access"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft/compile"
	"github.com/weft-proxy/weft/nft/ruleset"
	"github.com/weft-proxy/weft/nft/syntax"
)

// violations has at most MaxViolations.
type violations struct {
	list    []*weftv1.Violation
	dropped int
	// the first for each right and limit
	refusals []*access.Refusal
}

func (v *violations) add(reason weftv1.Violation_Reason, object *weftv1.ObjectName, message string) {
	v.append(&weftv1.Violation{Object: object, Message: message, Reason: reason})
}

func (v *violations) append(w *weftv1.Violation) {
	if len(v.list) >= MaxViolations {
		v.dropped++
		return
	}
	v.list = append(v.list, Shorten(w))
}

func (v *violations) refused(object *weftv1.ObjectName, r *access.Refusal) {
	if r == nil {
		return
	}
	v.note(r)
	reason := weftv1.Violation_REASON_LIMIT
	if r.Limit.Right() {
		reason = weftv1.Violation_REASON_PERMISSION
	}
	v.add(reason, object, r.Text)
}

// note keeps one refusal of each limit.
func (v *violations) note(r *access.Refusal) {
	if !slices.ContainsFunc(v.refusals, func(o *access.Refusal) bool { return o.Limit == r.Limit }) {
		v.refusals = append(v.refusals, r)
	}
}

func (v *violations) merge(o *violations) {
	for _, w := range o.list {
		v.append(w)
	}
	v.dropped += o.dropped
	for _, r := range o.refusals {
		v.note(r)
	}
}

func (v *violations) full() bool { return len(v.list) >= MaxViolations }

func (v *violations) compile(object *weftv1.ObjectName, err error) {
	v.append(violation(object, err))
}

func (v *violations) file(err error) {
	list := (*ruleset.ErrorList)(nil)
	if !errors.As(err, &list) {
		v.append(violation(nil, err))
		return
	}
	for _, e := range list.Errors {
		w := violation(nil, e)
		w.Reason = weftv1.Violation_REASON_SYNTAX
		v.append(w)
	}
}

func (v *violations) err(key desired.Key) error {
	if len(v.list) == 0 {
		return nil
	}
	list := v.list
	if v.dropped > 0 {
		list = append(list[:len(list):len(list)], &weftv1.Violation{
			Message: fmt.Sprintf("%d more violations are not listed", v.dropped),
			Reason:  weftv1.Violation_REASON_LIMIT,
		})
	}
	return &RejectedError{Fragment: key, Violations: list, Refusals: v.refusals}
}

func violation(object *weftv1.ObjectName, err error) *weftv1.Violation {
	v := &weftv1.Violation{Object: object, Reason: weftv1.Violation_REASON_INVALID}
	if errors.Is(err, compile.ErrSyntax) {
		v.Reason = weftv1.Violation_REASON_SYNTAX
	}
	if at := (*syntax.Error)(nil); errors.As(err, &at) {
		v.Message, v.Excerpt = at.Msg, excerpt(at)
		v.Line, v.Column = position(at.Pos)
	} else {
		v.Message = err.Error()
	}
	return v
}

// bytes of an excerpt on each side of the error
const excerptWidth = 120

// excerpt cuts a long line on both sides.
func excerpt(e *syntax.Error) string {
	if !e.Pos.IsValid() || len(e.Line) <= 2*excerptWidth {
		return e.Excerpt()
	}
	at := min(max(e.Pos.Column-1, 0), len(e.Line))
	from, to := max(at-excerptWidth, 0), min(at+excerptWidth, len(e.Line))
	line, column := e.Line[from:to], at-from+1
	if from > 0 {
		line, column = "..."+line, column+3
	}
	if to < len(e.Line) {
		line += "..."
	}
	return syntax.Caret(strings.ToValidUTF8(line, "?"), column)
}

func position(p syntax.Pos) (line, column uint32) {
	if !p.IsValid() {
		return 0, 0
	}
	return uint32(max(p.Line, 0)), uint32(max(p.Column, 0)) //nolint:gosec // lengths of texts below 1 GiB
}

const (
	// bytes of a name in a message
	maxClip = 64
	// bytes: weft's longest message has the names of four fragments and objects. Messages are kept,
	// logged, and sent to all watchers, and may quote a publisher.
	maxMessage = 2 << 10
	// two lines
	maxExcerpt = 4 * (2*excerptWidth + len("......"))
)

// Clip shortens a name to 64 bytes and "..." for a message.
func Clip(s string) string { return clip(s, maxClip) }

// Quote returns a string for a message, shortened and quoted as in Go.
func Quote(s string) string { return strconv.Quote(Clip(s)) }

// clip cuts at the end of a character.
func clip(s string, n int) string {
	if len(s) <= n+len("...") {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// Shorten shortens the strings of a violation, and returns it. They may quote a refused update of
// 14 MiB.
func Shorten(v *weftv1.Violation) *weftv1.Violation {
	v.Message, v.Excerpt = clip(v.GetMessage(), maxMessage), clip(v.GetExcerpt(), maxExcerpt)
	if o := v.GetObject(); o != nil {
		for _, s := range []*string{&o.Kind, &o.Family, &o.Table, &o.Name} {
			*s = clip(*s, MaxName)
		}
		o.Key = clip(o.GetKey(), MaxElementText)
	}
	return v
}
