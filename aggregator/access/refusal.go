package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

var (
	// ErrDenied means that a peer or publisher lacks a right.
	ErrDenied = errors.New("permission denied")
	// ErrExceeded means that a publisher has reached a limit.
	ErrExceeded = errors.New("limit exceeded")
	// ErrConfig means that a configuration cannot be used.
	ErrConfig = errors.New("configuration is not usable")
)

// Limit is the name of a right or limit in the configuration.
type Limit string

// The rights and limits.
const (
	// of callers, of a publisher's name, and of administrators
	LimitCaller    Limit = "caller"
	LimitPublisher Limit = "publisher"
	LimitAdmin     Limit = "admin"
	// of other publishers' content
	LimitRead Limit = "read"
	// of conntrack entries
	LimitFlows Limit = "flows"

	// The right to a class has the name of the class.
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
	// nanoseconds of a packet at a hook: in the worst case, and for every packet
	LimitPacket      Limit = "packetNanoseconds"
	LimitEveryPacket Limit = "everyPacketNanoseconds"
	// fixed: see [Publisher.Limited]
	LimitHookChains Limit = "hookChains"
	LimitTimes      Limit = "times"
)

// Counted returns the limits in Limits.Most.
func Counted() []Limit {
	return []Limit{
		LimitFragments, LimitRules, LimitElements, LimitBytes, LimitStreams,
		LimitChains, LimitBaseChains, LimitSets, LimitMemory, LimitPacket, LimitEveryPacket,
	}
}

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

// Right reports whether a refusal is ErrDenied instead of ErrExceeded.
func (l Limit) Right() bool {
	return l != LimitUpdates && l != LimitHookChains && l != LimitTimes && !slices.Contains(Counted(), l)
}

// Refusal refuses an action of a peer or publisher.
type Refusal struct {
	Limit Limit
	// that asked; "" if unknown
	Publisher string
	// the request, the allowed values, and the place in the configuration
	Text string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// Unwrap returns ErrDenied or ErrExceeded.
func (r *Refusal) Unwrap() error {
	if r.Limit.Right() {
		return ErrDenied
	}
	return ErrExceeded
}

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
