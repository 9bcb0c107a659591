// Package access decides which publishers may connect and which content they may publish.
//
// Its input is the configuration file, the credentials of a peer (from aggregator/server, at every
// call) and the requests of an update (from aggregator/admission). Its output is a publisher or a
// *Refusal; a nil *Refusal allows. Methods of Publisher refuse only requests outside of its
// rights and limits. Without a file only administrators may call.
//
// Read policy.go first, then rights.go and parse.go.
//
// # The file
//
// One YAML document of at most 1 MiB. An unknown or repeated field, a wrong type, an empty or
// out-of-range value, or an alias is an error. All errors are reported at once, with their
// lines. deploy/examples/config.yaml has every field.
//
//	apiVersion         weft.dev/v1alpha1
//	kind               Configuration
//	socketGroup        name or gid of the socket's group (mode 0660); default: the
//	                   daemon's own group
//	defaults.limits    limits of publishers that do not set them themselves
//	publishers         list; the first that matches a peer is its default
//
// A publisher has
//
//	name               1 to 63 of [a-z0-9._-], a letter or digit first; required
//	match              identity; required. All given fields must match:
//	  uid              user id, or a user's name
//	  gid              group id, or a group's name: the primary group or one of
//	                   the supplementary ones
//	  executable       absolute path or glob of the executable in the daemon's
//	                   mount namespace
//	  cgroup           path or glob of the cgroup, as /proc/PID/cgroup shows it
//	allow              allowed content of its fragments:
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
//	  shared           list of {family, table, chains, sets, objects, flags}: objects
//	                   that it may share although another publisher declared them
//	                   first; all but family are names or globs. sets are sets and
//	                   maps, objects named objects and flowtables; the only flag is
//	                   dormant. Default: empty (see "Shared tables")
//	accept             {publishers, mark}: publishers with accepts honoured by this
//	                   one's base chains, and the bit of the packet mark for that
//	                   (see "Honoured accepts"); default: empty
//	priorities         {min, max} of fragments' priorities: the lowest comes first,
//	                   and wins where maps disagree; default: all
//	read               read the content of all publishers, not only its own; default: false
//	flows              list and delete the entries of connection tracking (the service
//	                   Flows of the protocol), of all addresses and protocols, so that
//	                   connections that a policy no longer allows are cut; default: false
//	admin              as much as root may: act as every publisher, and on the
//	                   fragments of every publisher; default: false
//	system             a frontend of the node itself: it may use reserved connections
//	                   and memory when others have used up the rest; default: false
//	limits             of all its fragments and connections together. Each but
//	                   updatesPerSecond is a whole number, or one with Ki, Mi or Gi:
//	  fragments        number of fragments; default: 1,000
//	  rules            number of rules, named objects and flowtables; default:
//	                   400,000
//	  elements         number of elements of sets and maps; default: 4,000,000
//	  bytes            size of texts of rules and objects, packed elements, names
//	                   and comments
//	  updatesPerSecond updates a second in the long run, plans included; may be a
//	                   fraction
//	  burst            updates at once after a quiet time; default: updates of one
//	                   second
//	  streams          open Publish streams
//	  chains           number of chains; default: 200,000, but at most 1,000 more
//	                   than rules
//	  baseChains       number of chains with a hook; default: 64
//	  sets             number of sets and maps; default: 10,000, but at most 1,000
//	                   more than elements
//	  memory           memory of the kernel: declared sizes, elements, rules,
//	                   per-CPU data; an estimate (package nft/cost); default: 256Mi.
//	                   10,000 Services with 10 endpoints each need 9Mi, and each
//	                   port with session affinity 5Mi, because its map declares room
//	                   for 65,536 clients: so a publisher of Services needs system,
//	                   or a greater limit
//	  packetNanoseconds  cost of one packet at one hook in the worst case, an
//	                   estimate (package nft/cost): all rules that it can reach, their
//	                   lookups, and the chains reached by rules and verdict maps; a chain
//	                   counts once for each way to it. "ct count" costs time for each
//	                   connection seen: N for "ct count over N ... drop", otherwise
//	                   unbounded. 200 jumps to
//	                   chains of 100 short rules reach the default of half a
//	                   millisecond; 10,000 Services need 3,000 to 4,000
//	  everyPacketNanoseconds  the part that every packet pays: each rule up to its
//	                   first condition, and the chains reached by unconditional jumps.
//	                   500 to 850 rules in a base chain reach the default of 20
//	                   microseconds: 500 of "ct state", 600 of "tcp dport", 850 of
//	                   "ip saddr"
//
// Reading has fixed limits: 8 open calls of a publisher, and 2 MiB of answers a second. Elements of
// anonymous sets count as elements.
//
// A limit without a default that is unset, here and in defaults.limits, is unlimited.
// Administrators and publishers with system have only the limits set for them. Publishers with the
// defaults also cannot have a gc-interval below one second, a timeout of more than ten years, or a
// base chain at a hook of a family with 512 base chains: the kernel allows 1,024. Their updates may
// not take the kernel longer than 100 ms in one transaction, as predicted (aggregator/merger.go).
// The limits of package admission on a single update always apply.
//
// Globs have *, ? and [a-z]. In paths these stay within one component, and the component ** matches
// any number of components.
//
// # Classes
//
// The fields of allow from policyDrop to trace are classes of statements and declarations
// (nft/LANGUAGE.md), not allowed by default. Matches, verdicts, reject, counters, limits, sets and
// verdict maps are of the class filter, which is always allowed.
//
// A rule that changes the packet mark must keep the bits outside of the mask: "meta mark set 0x100"
// changes all bits, and "meta mark set meta mark & 0xff00ffff | 0x10000" changes bits of 0xff0000.
// Data of a map can change all bits. Only masqueradeMark grants the bit 0x4000. With another
// --masquerade-bit, leave that bit out of marks.
//
// A log statement counts with the limit in packets before it in the same rule; a burst counts as if
// it came once a minute. A rule without such a limit needs log: unlimited. Named limits do not
// count.
//
// # Shared tables
//
// The first publisher to declare a chain, set, map, named object or flowtable owns it while it
// declares it, also across restarts. The owner's fragments share it freely. Another publisher of
// the configuration needs an entry of allow.shared, to add rules or elements or to refer to the
// object. The flag dormant takes the chains of all publishers off their hooks. If others have
// fragments in the table, the flag needs an entry, and without one has no effect while they are
// there. Publishers outside the configuration, and publishers with admin, may share everything.
//
// # Honoured accepts
//
// The drop of a host firewall drops packets that other publishers accept. With accept, the firewall
// honours the accepts of the named publishers at its hooks input, forward and output: their
// accepting rules first set the bit of the mark. Base chains of the firewall, of type filter, begin
// with a rule that accepts packets with the bit. weft get shows both. The named publishers' base
// chains must have a smaller priority than the firewall's. An accepting element of a verdict map
// sets no bit.
//
// A configuration with the bit in the allow.marks of a third publisher is refused. A process can
// forge the bit: in the node's network namespace, CAP_NET_ADMIN, or CAP_NET_RAW from Linux 5.17 on,
// is enough to mark its own packets (socket(7), SO_MARK). Base chains of other programs are never
// changed.
//
// # Identity of a peer
//
// The kernel vouches for the uid and the groups, as of connect(2), and for the cgroup, which a
// process without privileges cannot leave. The executable is read when the connection is accepted;
// later the process can run another program. So a match also needs a uid, a gid or a cgroup: the
// executable prevents mistakes, not attacks by the same user.
//
// The executable must be the file (device and inode) at the path in the daemon's mount namespace,
// or have been until it was replaced: in its own mount namespace a process can have any file at any
// path. Programs of containers with their own files are matched by cgroup. The daemon needs
// CAP_SYS_PTRACE to read the executable of another user's processes, and the node's PID namespace
// to see processes of other containers.
//
// # Administrators
//
// Administrators may act as every publisher, by its name. They are peers of a publisher with admin,
// processes of root known to hold CAP_NET_ADMIN in the daemon's user namespace, and the user of the
// daemon, unless that is root. The capability is read with the executable, and is unknown for a
// process in a PID namespace that the daemon does not see. Root without the capability is a
// publisher like others: uid: 0 matches it. Rights and limits belong to the name: an administrator
// under a name that is not configured has no limits.
//
// # Changes
//
// Control.Follow applies the file when it changes, and on SIGHUP. The new rights apply to the next
// update of a session; committed content stays. A file with errors is reported, and the last
// good one stays in force.
//
// # Concurrency
//
// Policy and its content are immutable. Control is safe for concurrent use.
//
// # Errors
//
// An unusable file is a *FileError. A refused peer or update is a *Refusal, which wraps ErrDenied
// or ErrExceeded.
package access
