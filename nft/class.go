package nft

import "fmt"

// Class is a capability of a ruleset. Every statement, kind of object and type of data belongs to
// one class (package compile).
type Class uint8

// The classes; 0 is not a class.
const (
	// ClassFilter decides over packets, counts them, and fills sets.
	ClassFilter Class = iota + 1
	// ClassPolicyDrop is policy drop.
	ClassPolicyDrop
	// ClassLog logs packets.
	ClassLog
	// ClassMarks changes packet marks.
	ClassMarks
	// ClassConntrack changes tracking.
	ClassConntrack
	// ClassNAT translates addresses, and writes header fields that decide a packet's destination or
	// connection.
	ClassNAT
	// ClassMangle writes other header fields, and the priority.
	ClassMangle
	// ClassDup sends copies of packets.
	ClassDup
	// ClassFwd sends packets to a device.
	ClassFwd
	// ClassQueue passes packets to programs.
	ClassQueue
	// ClassRoute is base chains of type route.
	ClassRoute
	// ClassFlowtables declares and fills flowtables.
	ClassFlowtables
	// ClassSynProxy answers TCP handshakes.
	ClassSynProxy
	// ClassSecMark changes security marks.
	ClassSecMark
	// ClassTrace traces packets.
	ClassTrace

	numClasses
)

var classes = [numClasses]struct{ name, does string }{
	ClassFilter:     {"filter", "filter"},
	ClassPolicyDrop: {"policyDrop", "have base chains with policy drop"},
	ClassLog:        {"log", "log packets"},
	ClassMarks:      {"marks", "change the packet mark"},
	ClassConntrack:  {"conntrack", "change connection tracking (notrack, ct mark set, ct zone set, ct helpers, timeouts and expectations, ...)"},
	ClassNAT:        {"nat", "translate addresses, write addresses or ports, or have maps of them (dnat, masquerade, redirect, tproxy, tcp dport set, ...)"},
	ClassMangle:     {"mangle", "change packets (ip dscp set, tcp option maxseg size set, meta priority set, ...)"},
	ClassDup:        {"dup", "send copies of packets (dup)"},
	ClassFwd:        {"fwd", "send packets to devices (fwd)"},
	ClassQueue:      {"queue", "pass packets to programs (queue)"},
	ClassRoute:      {"route", "have base chains of type route"},
	ClassFlowtables: {"flowtables", "have flowtables or add connections to them"},
	ClassSynProxy:   {"synproxy", "answer TCP connections (synproxy)"},
	ClassSecMark:    {"secmark", "change security marks (meta secmark set, ct secmark set, secmark objects)"},
	ClassTrace:      {"trace", "trace packets (meta nftrace set)"},
}

// Classes returns all classes, ascending.
func Classes() []Class {
	all := make([]Class, 0, numClasses-1)
	for c := ClassFilter; c < numClasses; c++ {
		all = append(all, c)
	}
	return all
}

// String returns the name.
func (c Class) String() string {
	if c == 0 || c >= numClasses {
		return fmt.Sprintf("class(%d)", uint8(c))
	}
	return classes[c].name
}

// Does returns text after "may not".
func (c Class) Does() string {
	if c == 0 || c >= numClasses {
		return "use " + c.String()
	}
	return classes[c].does
}

// ClassSet is a set of classes.
type ClassSet uint32

// Has reports whether the set has a class.
func (s ClassSet) Has(c Class) bool { return s>>c&1 != 0 }

// With adds a class.
func (s ClassSet) With(c Class) ClassSet { return s | 1<<c }

// All returns the classes, ascending.
func (s ClassSet) All() []Class {
	var all []Class
	for c := range numClasses {
		if s.Has(c) {
			all = append(all, c)
		}
	}
	return all
}
