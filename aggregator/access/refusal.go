package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/nft"
)

var (
	// ErrDenied means that a peer or publisher lacks a right.
	ErrDenied = errors.New("permission denied")
	// ErrExceeded means that a publisher is at one of its limits.
	ErrExceeded = errors.New("limit exceeded")
	// ErrConfig means that a configuration cannot be used.
	ErrConfig = errors.New("configuration is not usable")
)

// Limit is a right or limit, as it is named in the configuration.
type Limit string

// The rights and limits.
const (
	// LimitCaller is the right to call at all, LimitPublisher that to a name,
	// LimitAdmin that of administrators.
	LimitCaller    Limit = "caller"
	LimitPublisher Limit = "publisher"
	LimitAdmin     Limit = "admin"
	// LimitRead is the right to read what other publishers have.
	LimitRead Limit = "read"
	// LimitFlows is the right to list and delete conntrack entries.
	LimitFlows Limit = "flows"

	// The rights to classes are named as the classes: see LimitOf.
	LimitTable         Limit = "tables"
	LimitFamily        Limit = "families"
	LimitHook          Limit = "hooks"
	LimitChainPriority Limit = "chainPriorities"
	LimitDevices       Limit = "devices"
	LimitPriority      Limit = "priorities"
	LimitShared        Limit = "shared"

	LimitFragments Limit = "fragments"
	LimitRules     Limit = "rules"
	LimitElements  Limit = "elements"
	LimitBytes     Limit = "bytes"
	LimitUpdates   Limit = "updatesPerSecond"
	LimitStreams   Limit = "streams"

	LimitChains     Limit = "chains"
	LimitBaseChains Limit = "baseChains"
	LimitSets       Limit = "sets"
	LimitMemory     Limit = "memory"
	// LimitPacket is what a packet may pay at most at a hook, LimitEveryPacket what no packet is
	// spared there, both in nanoseconds.
	LimitPacket      Limit = "packetNanoseconds"
	LimitEveryPacket Limit = "everyPacketNanoseconds"
	// LimitHookChains and LimitTimes are not configured: see [Publisher.Limited].
	LimitHookChains Limit = "hookChains"
	LimitTimes      Limit = "times"
)

// LimitOf returns the right to a class of statements and declarations.
func LimitOf(c nft.Class) Limit { return Limit(c.String()) }

// Counted are the limits of what a publisher has at a time.
func Counted() []Limit {
	return []Limit{
		LimitFragments, LimitRules, LimitElements, LimitBytes, LimitStreams,
		LimitChains, LimitBaseChains, LimitSets, LimitMemory, LimitPacket, LimitEveryPacket,
	}
}

// things returns what a limit counts, in words.
func (l Limit) things() string {
	switch l {
	case LimitBaseChains:
		return "base chains"
	case LimitMemory:
		return "bytes of kernel memory"
	default:
		return string(l)
	}
}

// Right reports whether l is a right, not a number: its refusal is ErrDenied, that of the
// others ErrExceeded.
func (l Limit) Right() bool {
	return l != LimitUpdates && l != LimitHookChains && l != LimitTimes && !slices.Contains(Counted(), l)
}

// Refusal is what a peer or publisher may not do.
type Refusal struct {
	Limit Limit
	// Publisher is who asked; "" where that is not known.
	Publisher string
	// Text says what was asked, what is allowed, and where that is configured.
	Text string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// Unwrap returns ErrDenied or ErrExceeded.
func (r *Refusal) Unwrap() error {
	if r.Limit.Right() {
		return ErrDenied
	}
	return ErrExceeded
}

// join lists words for a message.
func join[T any](words []T) string {
	if len(words) == 0 {
		return "none"
	}
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = fmt.Sprint(w)
	}
	return strings.Join(all, ", ")
}
