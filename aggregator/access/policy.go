package access

import (
	"fmt"
	"math"
	"slices"

	"github.com/weft-proxy/weft/nft"
)

// Policy is a configuration in force. With the zero value only administrators may call.
type Policy struct {
	// "" without a file
	File string
	// nil means the daemon's own
	SocketGroup *uint32
	// in the order of the file
	Publishers []*Publisher

	byName map[string]*Publisher
}

// Publisher is the configuration of a publisher.
type Publisher struct {
	Name  string `json:"name" text:"name"`
	Match Match  `json:"match"`
	Allow Allow  `json:"allow"`
	// of its fragments
	Priorities Range `json:"priorities"`
	// all publishers' content
	Read bool `json:"read"`
	// list and delete conntrack entries
	Flows bool `json:"flows"`
	// act as every publisher
	Admin bool `json:"admin"`
	// resources reserved for the system
	System bool `json:"system"`
	// honoured by this publisher's base chains
	Accept *Accept `json:"accept"`
	// bits of the packet mark set by this publisher's accepts: the Mark of each Accept with its
	// name
	Honoured uint32
	Limits   Limits `json:"limits"`

	source
}

// Match identifies a publisher by all set fields.
type Match struct {
	UID *uint32 `json:"uid" text:"user"`
	GID *uint32 `json:"gid" text:"group"`
	// globs
	Executable string `json:"executable" text:"path"`
	Cgroup     string `json:"cgroup" text:"path"`
}

// Allow is the allowed content of a publisher's fragments. For families and hooks, nil allows all.
type Allow struct {
	// nil allows tables named as the publisher
	Tables          []TablePattern `json:"tables"`
	Families        []nft.Family   `json:"families" text:"family"`
	Hooks           []string       `json:"hooks" text:"hook"`
	ChainPriorities Range          `json:"chainPriorities"`
	Classes         nft.ClassSet
	// the fields of classes during decoding, then nil
	Granted map[string]bool `json:",inline"`
	// packets a second, or UnlimitedLog
	LogRate int    `json:"log" text:"log"`
	Marks   uint32 `json:"marks"`
	// globs; nil allows no device
	Devices []string `json:"devices" text:"glob"`
	// of other publishers
	Shared []SharedPattern `json:"shared"`
}

// MasqueradeMark is the bit of the packet mark by which Services masquerade: the default of
// --masquerade-bit. Masks such as 0xff00 include it by accident, and do not grant it.
const MasqueradeMark = 1 << 14

// UnlimitedLog is the LogRate without a limit.
const UnlimitedLog = math.MaxInt32

// TablePattern matches tables; a nil family is every family.
type TablePattern struct {
	Family *nft.Family `json:"family" text:"family"`
	// a glob
	Name string `json:"name" text:"glob"`
}

// String returns the pattern as nft names tables.
func (t TablePattern) String() string {
	if t.Family == nil {
		return t.Name
	}
	return t.Family.String() + " " + t.Name
}

// Range is a closed range of numbers. A nil Min or Max does not limit it.
type Range struct {
	Min *int32 `json:"min"`
	Max *int32 `json:"max"`
}

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

// Limits bound the content and requests of a publisher; 0 means unlimited.
type Limits struct {
	// by the limits of Counted
	Most             map[Limit]int `json:",inline" text:"limit"`
	UpdatesPerSecond float64       `json:"updatesPerSecond" text:"rate"`
	// at least 1 if UpdatesPerSecond is set
	Burst int `json:"burst" text:"limit"`
}

// Publisher returns a publisher's configuration, or nil. A nil publisher has no limits, and only
// administrators may act under its name.
func (p *Policy) Publisher(name string) *Publisher { return p.byName[name] }

// Peer is the process at the other end of a connection.
type Peer struct {
	PID      int32
	UID, GID uint32
	// supplementary groups
	Groups []uint32
	// the daemon itself, or uid 0 known to hold CAP_NET_ADMIN in the daemon's user namespace
	NetAdmin bool
	// "" if unknown
	Executable string
	// one for each hierarchy
	Cgroups []string
	// why NetAdmin, Executable or Cgroups are unknown, or nil
	Unknown error
}

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

// Identity is the publisher that a peer acts as, with the rights of all publishers matching the
// peer.
type Identity struct {
	Publisher string
	// act on fragments of other publishers
	Admin bool
	// read content of other publishers
	Read bool
	// list and delete conntrack entries
	Flows bool
	// connections and message memory reserved for the system
	System bool
}

// Resolve returns the publisher that a peer acts as: want, if allowed. If want is empty, it is the
// first publisher that matches the peer, or else "uid-N" for an administrator. If root is true, the
// peer is an administrator regardless of the file. Resolve does not check that want is a valid
// name.
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

// Root explains, for an error, why a peer of uid 0 lacks the rights of root, and the remedy, or
// returns "".
func (p *Peer) Root() string {
	if p.UID != 0 || p.NetAdmin {
		return ""
	}
	return "; root has all rights if the aggregator sees that the process holds CAP_NET_ADMIN: " +
		"run weft where the aggregator runs (kubectl exec POD -c aggregator -- /weft), or name uid 0 in the configuration"
}

// String describes the peer for a message with the uid.
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
