package access

import (
	"fmt"
	"math"
	"slices"

	"github.com/weft-proxy/weft/nft"
)

// Policy is a configuration in force. The zero value is that of a daemon
// without one: administrators alone.
type Policy struct {
	// File is where it comes from; "" without a file.
	File string
	// SocketGroup is the group of the socket, nil where the daemon's own is
	// right.
	SocketGroup *uint32
	// Publishers are in the order of the file.
	Publishers []*Publisher

	byName map[string]*Publisher
}

// Publisher is what the configuration says of one publisher.
type Publisher struct {
	Name  string
	Match Match
	Allow Allow
	// Priorities are those that its fragments may have.
	Priorities Range
	// Read allows to read the content of every publisher.
	Read bool
	// Flows allows to list and delete conntrack entries.
	Flows bool
	// Admin allows to act as every publisher.
	Admin bool
	// System allows to use what is reserved for the system.
	System bool
	// Accept are the publishers whose accepts the base chains of this one honour; nil if there are none.
	Accept *Accept
	// Honoured are the bits of the packet mark that the accepts of this publisher set: the Mark of each
	// Accept that names it.
	Honoured uint32
	Limits   Limits

	file string
	// lines are those of the fields that are given, by their path within the
	// publisher, such as "allow.tables"; "" is the publisher itself. Those
	// that come from the defaults are in inherited.
	lines, inherited map[string]int
}

// Match says who a publisher is: all that is set must hold.
type Match struct {
	UID, GID *uint32
	// Executable and Cgroup are globs.
	Executable, Cgroup string
}

// Allow says what a publisher's fragments may have. A nil slice of families or hooks
// allows everything, an empty one nothing.
type Allow struct {
	// Tables are those that the publisher may use; nil allows tables named as the
	// publisher.
	Tables          []TablePattern
	Families        []nft.Family
	Hooks           []string
	ChainPriorities Range
	// Classes are the classes of statements and declarations. nft.ClassFilter is always
	// allowed.
	Classes nft.ClassSet
	// LogRate is how many packets a second all rules together may log, or UnlimitedLog.
	LogRate int
	// Marks has the bits of the packet mark that rules may change.
	Marks uint32
	// Devices are globs of the devices that base chains and flowtables may name; nil
	// allows none.
	Devices []string
	// Shared names what other publishers declared first and this one may share.
	Shared []SharedPattern
}

// MasqueradeMark is the bit of the packet mark by which Services masquerade: the default of
// --masquerade-bit, which is kube-proxy's. A mask does not grant it, because many masks that
// are written without thinking of it, such as 0xff00, have it.
const MasqueradeMark = 1 << 14

// UnlimitedLog is the LogRate that does not limit how much is logged.
const UnlimitedLog = math.MaxInt32

// TablePattern matches tables. Without a family it matches those of each.
type TablePattern struct {
	Family *nft.Family
	// Name is a glob.
	Name string
}

// String returns the pattern as nft names tables.
func (t TablePattern) String() string {
	if t.Family == nil {
		return t.Name
	}
	return t.Family.String() + " " + t.Name
}

// Range is a closed range of numbers. A nil Min or Max does not limit it.
type Range struct{ Min, Max *int32 }

// Has reports whether n is in the range.
func (r Range) Has(n int32) bool {
	return (r.Min == nil || n >= *r.Min) && (r.Max == nil || n <= *r.Max)
}

// String returns the range in words.
func (r Range) String() string {
	switch {
	case r.Min == nil && r.Max == nil:
		return "any"
	case r.Min == nil:
		return fmt.Sprintf("at most %d", *r.Max)
	case r.Max == nil:
		return fmt.Sprintf("at least %d", *r.Min)
	default:
		return fmt.Sprintf("%d to %d", *r.Min, *r.Max)
	}
}

// Limits bound what a publisher holds and asks for; 0 means unlimited.
type Limits struct {
	// Most has the limits of fragments, rules, elements, bytes and streams.
	Most             map[Limit]int
	UpdatesPerSecond float64
	// Burst is at least 1 if UpdatesPerSecond is set.
	Burst int
}

// Publisher returns what is said of a publisher, or nil: then it has no
// limits, and only administrators may act under the name.
func (p *Policy) Publisher(name string) *Publisher { return p.byName[name] }

// Peer is the process at the other end of a connection, as the kernel tells.
type Peer struct {
	PID      int32
	UID, GID uint32
	// Groups are the supplementary ones.
	Groups []uint32
	// NetAdmin reports whether the peer is the daemon itself, or has uid 0 and is known to
	// hold CAP_NET_ADMIN in the daemon's user namespace.
	NetAdmin bool
	// Executable is a path, "" where it is not known.
	Executable string
	// Cgroups are paths, one for each hierarchy.
	Cgroups []string
	// Unknown says why NetAdmin, Executable or Cgroups are not known; nil where
	// they are.
	Unknown error
}

// matches reports whether a peer is meant.
func (m *Match) matches(peer *Peer) bool {
	if m.UID != nil && peer.UID != *m.UID {
		return false
	}
	if m.GID != nil && peer.GID != *m.GID && !slices.Contains(peer.Groups, *m.GID) {
		return false
	}
	if m.Executable != "" && !matchPath(m.Executable, peer.Executable) {
		return false
	}
	return m.Cgroup == "" || slices.ContainsFunc(peer.Cgroups, func(c string) bool { return matchPath(m.Cgroup, c) })
}

// Identity is who a peer acts as.
type Identity struct {
	Publisher string
	// Admin allows to act on the fragments of others.
	Admin bool
	// Read allows to read the content of others. It holds for administrators too.
	Read bool
	// Flows allows to list and delete conntrack entries. It holds for administrators too.
	Flows bool
	// System allows to use what is reserved for the system: connections, and memory
	// of messages. It holds for administrators too.
	System bool
}

// Resolve returns the publisher that a peer acts as: want if the peer may, or with an empty
// want the first publisher that matches it, else "uid-N" of an administrator. If root is
// true, the peer is an administrator whatever the file says. Resolve does not check that want is a
// valid name.
//
// Possible errors: a *Refusal that wraps ErrDenied.
func (p *Policy) Resolve(peer *Peer, root bool, want string) (Identity, error) {
	id := Identity{Publisher: want, Admin: root, Read: root, Flows: root, System: root}
	var names []string
	for _, pub := range p.Publishers {
		if pub.Match.matches(peer) {
			names = append(names, pub.Name)
			id.Admin = id.Admin || pub.Admin
			id.Read = id.Read || pub.Admin || pub.Read
			id.Flows = id.Flows || pub.Admin || pub.Flows
			id.System = id.System || pub.Admin || pub.System
		}
	}
	switch {
	case len(names) == 0 && !root:
		return Identity{}, p.stranger(peer)
	case want == "" && len(names) > 0:
		id.Publisher = names[0]
	case want == "":
		id.Publisher = fmt.Sprintf("uid-%d", peer.UID)
	case !id.Admin && !slices.Contains(names, want):
		return Identity{}, &Refusal{
			Limit: LimitPublisher, Publisher: want,
			Text: fmt.Sprintf("uid %d may not act as publisher %q: %s lets it act as %s%s", peer.UID, want, p.File, join(names), peer.Root()),
		}
	}
	return id, nil
}

// stranger refuses a peer that is not a publisher.
func (p *Policy) stranger(peer *Peer) *Refusal {
	r := &Refusal{Limit: LimitCaller}
	if p.File == "" {
		r.Text = fmt.Sprintf("uid %d may not call the aggregator: without a configuration only root and the aggregator's own user may%s", peer.UID, peer.Root())
	} else {
		r.Text = fmt.Sprintf("uid %d may not call the aggregator: no publisher in %s matches it (%s)%s", peer.UID, p.File, peer, peer.Root())
	}
	if peer.Unknown != nil {
		r.Text += fmt.Sprintf("; what is not known of it: %v", peer.Unknown)
	}
	return r
}

// Root returns, for the error of a peer of uid 0 that lacks a right, why it has not the
// rights of root and what to do; "" for every other peer.
func (p *Peer) Root() string {
	if p.UID != 0 || p.NetAdmin {
		return ""
	}
	return "; root has all rights if the aggregator sees that the process holds CAP_NET_ADMIN: " +
		"run weft where the aggregator runs (kubectl exec POD -c aggregator -- /weft), or name uid 0 in the configuration"
}

// String returns the group, the executable and the first cgroup of a peer, for a
// message that has the uid.
func (p *Peer) String() string {
	s := fmt.Sprintf("gid %d", p.GID)
	if len(p.Groups) > 0 {
		s += fmt.Sprintf(", groups %v", p.Groups)
	}
	if p.Executable != "" {
		s += ", executable " + p.Executable
	}
	if len(p.Cgroups) > 0 {
		s += ", cgroup " + p.Cgroups[0]
	}
	return s
}
