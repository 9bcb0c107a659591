// Package access decides which publishers may connect and what they may publish.
//
// In come the configuration file, the credentials of a peer (from aggregator/server,
// at every call) and what an update asks for (from aggregator/admission). Out come a
// publisher, or a *Refusal. The package opens no socket and does not parse rules.
// Without a file only administrators may call: root with CAP_NET_ADMIN and the daemon's
// own user.
//
// Read first: policy.go (publishers and peers), then rights.go (what is allowed),
// then decode.go and parse.go (the file).
//
// # The file
//
// One YAML document. An unknown or repeated field, a wrong type, a value that
// is out of range or empty, an anchor or an alias is an error; all of them are
// reported at once, with their lines. deploy/examples/config.yaml has every
// field.
//
//	apiVersion         weft.dev/v1alpha1
//	kind               Configuration
//	socketGroup        name or gid of the group that the socket belongs to (mode
//	                   0660); without it, the daemon's own group
//	defaults.limits    limits of publishers that do not set them themselves
//	publishers         list; of several that match a peer the first is its
//	                   default
//
// A publisher has
//
//	name               1 to 63 of [a-z0-9._-], a letter or digit first; required
//	match              who it is; required. All that is given must hold:
//	  uid              user id, or a user's name
//	  gid              group id, or a group's name: the primary group or one of
//	                   the supplementary ones
//	  executable       absolute path or glob of the executable in the daemon's
//	                   mount namespace
//	  cgroup           path or glob of the cgroup, as /proc/PID/cgroup shows it
//	allow              what its fragments may have:
//	  tables           list of {family, name}; name is a glob, no family means
//	                   each. Default: tables named as the publisher
//	  families         list of ip, ip6, inet, arp, bridge, netdev; default: all
//	  hooks            list of hooks of base chains; default: all
//	  chainPriorities  {min, max} of base chains' priorities, as numbers
//	  devices          list of globs: devices of base chains and flowtables;
//	                   default: none
//	  policyDrop       base chains with policy drop
//	  log              packets a second that all rules together may log, or
//	                   unlimited; default: 0
//	  marks            mask of the bits of the packet mark that rules may change;
//	                   default: 0
//	  masqueradeMark   the bit 0x4000 of the mark, which marks does not grant
//	  conntrack        connection tracking: marks, zones, helpers, timeouts,
//	                   expectations, labels, events, notrack
//	  nat              address translation, base chains of type nat, writes to
//	                   addresses and ports, maps with such data
//	  mangle           writes to other header fields, and packet priorities
//	  dup              copies of packets to other hosts and devices
//	  fwd              packets to devices
//	  queue            packets to programs in user space
//	  route            base chains of type route
//	  flowtables       flowtables, and connections in them
//	  synproxy         SYN proxies
//	  secmark          security marks
//	  trace            traces of packets
//	  shared           list of {family, table, chains, sets, objects, flags}: what
//	                   it may share in tables where another publisher declared it
//	                   first; all but family are names or globs. sets are sets and
//	                   maps, objects named objects and flowtables; the only flag is
//	                   dormant. Default: nothing (see "Shared tables")
//	accept             {publishers, mark}: the publishers whose accepts the base chains
//	                   of this one honour, and the bit of the packet mark for that
//	                   (see "Honoured accepts"); default: none
//	priorities         {min, max} of fragments' priorities: the lowest comes first,
//	                   and wins where maps disagree; default: all
//	read               read the content of all publishers, not only its own; default: false
//	flows              list and delete the entries of connection tracking (the service
//	                   Flows of the protocol), of all addresses and protocols, so that
//	                   connections that a policy no longer allows are cut; default: false
//	admin              as much as root may: act as every publisher, and on the
//	                   fragments of every publisher; default: false
//	system             a frontend of the node itself: it may use the connections and
//	                   the memory that are reserved when others have used up the
//	                   rest; default: false
//	limits             of all its fragments and connections together:
//	  fragments        number of fragments
//	  rules            number of rules, named objects and flowtables
//	  elements         number of elements of sets and maps
//	  bytes            size of texts of rules and objects, packed elements, names
//	                   and comments; a number, or one with Ki, Mi or Gi
//	  updatesPerSecond updates a second in the long run, plans included; may be a
//	                   fraction
//	  burst            updates at once after a quiet time; default: those of one
//	                   second
//	  streams          open Publish streams
//	  chains           number of chains
//	  baseChains       number of chains with a hook
//	  sets             number of sets and maps
//	  memory           memory of the kernel: declared sizes, elements, rules, what
//	                   each CPU has; an estimate (package nft/cost). A number, or
//	                   one with Ki, Mi or Gi. 10,000 Services with 10 endpoints each
//	                   need 9Mi, and each port with session affinity 5Mi, because
//	                   its map declares room for 65,536 clients: so a publisher of
//	                   Services needs system, or a greater limit
//	  packetNanoseconds  what one packet pays at one hook in the worst case, an
//	                   estimate (package nft/cost): all rules that it can come to, with
//	                   what they look up and the chains that rules and verdict maps send
//	                   it to; a chain counts once for each way to it. "ct count" takes
//	                   as long as the connections that it has seen: those of "ct count
//	                   over N ... drop" are N, others are not bounded. 200 jumps to
//	                   chains of 100 short rules reach the default of half a
//	                   millisecond; 10,000 Services need 3,000 to 4,000
//	  everyPacketNanoseconds  the part that no packet is spared: of each rule up to its
//	                   first condition, with the chains that rules without a condition
//	                   jump to. About 1,000 rules in a base chain reach the default of
//	                   20 microseconds
//
// For reading there are limits that cannot be configured: a publisher may have 8 calls open
// that read, and gets 2 MiB of answers a second (see aggregator/server/reads.go).
//
// Elements of anonymous sets count as elements.
//
// A limit that is not set, here or in defaults.limits, is not there, with these
// exceptions: fragments 1,000, chains 200,000 or 1,000 more than rules, baseChains 64, sets
// 10,000 or 1,000 more than elements, memory 256Mi, packetNanoseconds 500,000 and
// everyPacketNanoseconds 20,000.
// Administrators and publishers with system have no limits but those that are set for them.
// Publishers that have the exceptions also cannot have a gc-interval below one second, a
// timeout of more than ten years, or a base chain at a hook of a family where there are 512:
// the kernel allows 1,024. No update of theirs may take the kernel longer than 100 ms in one
// transaction, as predicted (aggregator/bounded.go). The limits of package admission on a single update hold in any
// case.
//
// Globs have *, ? and [a-z]; in paths these stay within one component, and a
// component that is ** matches any number of components.
//
// The file is read from the nodes of the YAML library, not into Go structs: with
// KnownFields the library reports unknown fields with the names of Go types and
// without paths, stops at the first wrong value of a type with its own decoder, and
// accepts anchors, repeated merges and numbers such as 010.
//
// # Classes
//
// The fields of allow from policyDrop to trace are classes of statements and
// declarations. A class is not allowed unless its field says so. nft/LANGUAGE.md lists
// what each class has. Matches, verdicts, reject, counters, limits, sets and verdict maps
// are of the class filter, which is always allowed.
//
// A rule that changes the packet mark must keep the bits outside of the mask, so that
// the marks of others stay: "meta mark set 0x100" changes all bits, and "meta mark set
// meta mark & 0xff00ffff | 0x10000" changes bits of 0xff0000. Services masquerade packets
// that have the bit 0x4000, and so marks never grants it: only masqueradeMark does. With
// another --masquerade-bit, leave that bit out of marks. Data of a map can change all
// bits.
//
// A log statement counts with the limit in packets that precedes it in the same rule; a
// burst counts as if it came once a minute. A rule without such a limit can log every
// packet, and needs log: unlimited. Named limits do not count.
//
// # Shared tables
//
// The publisher that declares a chain, set, map, named object or flowtable first owns it
// as long as it declares it, also across restarts. Its fragments share it freely. Another
// publisher of the configuration needs an entry of allow.shared that names it to add
// rules or elements to it, or to refer to it in a rule or element. The flag dormant
// takes the chains of all publishers off their hooks: with fragments of others in the
// table it needs an entry with that flag, and without one it has no effect while others
// are in the table. Publishers that are not in the configuration, and those with admin,
// may share everything.
//
// # Honoured accepts
//
// An accept ends its own base chain only, so the drop of a host firewall drops what other
// publishers accept. With accept, the firewall honours the accepts of the publishers that it
// names, at its hooks input, forward and output: their rules that accept set the bit of the mark
// first, and its base chains of type filter begin with a rule that accepts packets with the
// bit. Both are part of the fragments: weft get shows them. Their base chains must have a
// smaller priority than the firewall's. An element of a verdict map that accepts sets no
// bit. A publisher that is not named cannot set the bit: a configuration in which allow.marks
// of another has it is refused. A process can forge the bit: in the node's network namespace,
// CAP_NET_ADMIN, or CAP_NET_RAW from Linux 5.17 on, is enough to set the mark of its own packets
// (socket(7), SO_MARK). A changed configuration holds for fragments that are sent
// afterwards. Base chains of other programs are never changed.
//
// # What identifies a peer
//
// The uid and the groups are the kernel's word, as of connect(2), and so is the
// cgroup, which a process without privileges cannot leave. The executable, which
// is read when the connection is accepted, is not: a process can run another
// program while its connection stays. It tells apart the programs of one user
// that trusts them all, and so a match needs a uid, a gid or a cgroup too: it keeps
// mistakes apart, not attackers of the same user. It must be the file (device and inode) at
// that path in the daemon's mount namespace, or have been until it was replaced: in a mount
// namespace of its own a process can have any file at any path. Programs of containers with files of their own are matched by cgroup. To read the
// executable of another user's processes the daemon needs CAP_SYS_PTRACE; to see processes
// of other containers it needs the node's PID namespace.
//
// # Administrators
//
// A process of root that is known to hold CAP_NET_ADMIN in the daemon's user namespace is an
// administrator, and so is the user of the daemon, unless that is root: they may act as every
// publisher, by its name. The capability is read when the connection is accepted. It is not
// known of a process in a PID namespace that the daemon does not see, such as another container's.
// Root without the capability is a publisher like others: uid: 0 matches it. Rights and limits belong to the name, whichever process acts
// under it. An administrator under a name that is not configured has no limits.
//
// # Changes
//
// Control.Follow reads the file again when it changes, and on SIGHUP. The next
// update of a session is judged by the new rights; what is committed stays. A
// file with errors is reported, and the last good one stays in force.
//
// # Concurrency
//
// Policy and what it holds are immutable. Control is safe for concurrent use.
//
// # Errors
//
// A file that cannot be used is a *FileError. A peer or an update that is
// refused is a *Refusal, which wraps ErrDenied or ErrExceeded.
package access
