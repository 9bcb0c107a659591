// Package aggregator merges the fragments of all publishers into one ruleset
// and is the only thing that writes it to the kernel.
//
// An Aggregator has two halves. Package admission runs on the goroutine of
// a request: it checks names and limits, parses rule text and packs elements,
// and answers with every violation that it finds. What it admits goes into a
// queue. The writer (writer.go) is one goroutine that owns the merged state and
// the kernel: it takes what is pending, applies it to the state, commits the
// difference as one batch, and answers with the revision.
//
// What a publisher may have (package access) is judged in two places: tables,
// hooks, NAT and priorities at admission, what all its fragments come
// to by the writer (quota.go), whose state counts it and takes it back with
// whatever undoes an update.
//
// It knows nothing of gRPC, of peers' credentials (both are aggregator/server),
// nor of Services; it opens no socket itself: the kernel and conntrack come in
// through Config.
//
// # The writer
//
// While the limiter has tokens an update is committed at once; under load the
// updates of one interval share a commit. Large ones have a commit to themselves,
// and take turns with the others (queue.go), so a publisher waits for one large
// update of others at most. An update that changes nothing is
// acknowledged with the last revision, without a commit. An update that the
// kernel refuses is taken out and its fragment stays at the last committed
// content; the others of the same batch are committed at once without it.
//
// Revisions count commits and grow across restarts: the last one is kept in the
// state directory, and a start counts from that or from the Unix time in
// milliseconds, whichever is greater, so losing the directory does not set
// them back.
//
// # Flows
//
// UDP conntrack entries that a commit made stale are removed after it, by one
// goroutine that never delays the next commit. While a removal runs, what later
// commits make stale is joined. A removal reads the connection tracking table once for
// each family that lost something; a commit that takes no UDP backend away, and gives
// no destination its first, has none. A start compares all flows with where they may
// go, once, when the publishers of watched maps are back, and after a repair; where no
// map leads UDP anywhere it reads nothing.
//
// The comparison knows nothing of destinations that are gone. So those that a commit
// leaves without a backend are noted in the state directory before it, until their
// flows are removed (package flows): a process that is killed in between leaves them to
// the next one, which takes those that lead nowhere. What was deleted while no weft ran
// needs no note: its elements are still in the kernel, and go with a commit.
//
// # Affinity
//
// What packets put into maps is not the publishers' and not weft's, and neither
// updates nor repairs nor restarts touch it. Affinity maps (Table.affinity_maps)
// are the exception that session affinity needs: an entry that leads to a backend
// which has gone would be renewed by each packet that follows it, for ever. So
// the state counts, for each value, the rules that make entries of it. It reads
// them from the compiled expressions, and after a start from those of the kernel's
// dump, so that nothing is to be remembered. When a commit takes the last rule of
// a value away, that one map is read right after the commit, on a goroutine and a
// socket of their own, and the writer removes what is left over (package flows): nothing
// is read otherwise, and no commit waits for the reading. The removal is in batches of
// 4,096, between which other commits take their turn. At a start, and after a repair, every
// affinity map is compared with the dump that was made anyway. A removal that fails is
// logged and tried again.
//
// # Cost
//
// An update costs what it changes, whatever else there is: what the writer looks at
// is counted (weft_aggregator_work_total), and a test holds it, what is sent to the
// kernel and what is allocated to the same with 100 services and with 10,000. Nothing
// is read from the kernel for a commit. One thing costs what there is in chains and
// sets, and no more: where declarations or references change, admission gets a new
// picture of them, and the record of whose they are is written to the disk, which
// takes a synced write, less than a millisecond. Changes of elements, and of rules
// that refer to the same objects, do neither. BenchmarkStage and BenchmarkPatch show
// the time of each step beside that of bare system calls.
//
// Nothing is kept of an update that was committed, but what package desired packs.
//
// # Faults
//
// Where the outcome of a batch is unknown, or somebody else changed the kernel,
// the kernel is read again, compared with what was committed, and repaired; watchers
// are told. A table that the kernel refuses to repair is left out and tried again
// every Config.Retry, and nobody else waits for it.
//
// What the state directory has is sealed with checksums. A file that is damaged is
// set aside and reported, never fatal: without the record nothing is withdrawn, as
// what only it knew belongs to nobody until its publishers return. A record that
// could not be written is not trusted by the next start.
//
// # Upgrade
//
// A new binary takes over in one of two ways, and in both the tables stay as they
// are while nobody owns them, publishers reconnect by themselves, and what was
// acknowledged is kept. The old one is stopped first, and commits what is pending;
// this is what systemd does at a restart, and Kubernetes at the rolling update of
// a DaemonSet (maxSurge 0, the default). Or the new one is started beside the old
// one with --standby: it waits for the socket, then for the tables, and
// has both a fraction of a second after the old one has ended or was killed.
//
// # Concurrency
//
// Aggregator and Session are safe for concurrent use, except that the updates
// of one Session must come from one goroutine at a time, as their order is
// their meaning. Run may be called once.
//
// # Plans and reads
//
// Plan, GetTable, ListTables, Owner and Get are answered by the writer between
// two commits: it copies what is asked for, and the caller's goroutine puts it
// into order and words. A plan takes its turn like an update and costs the
// writer what a commit of the same content costs it; the state is rolled back
// and the kernel drops the batch, so that nobody sees a trace of it.
//
// # Metrics
//
//	weft_commits_total            counter    batches committed
//	weft_commit_duration_seconds  histogram  by phase: wait (of the oldest update), build, kernel
//	weft_elements_changed_total   counter    elements of sets and maps, by change: added, deleted
//	weft_rules_changed_total      counter    rules, by change: added, deleted
//	weft_pending_updates          gauge      updates that wait for a commit
//	weft_rejections_total         counter    by publisher (64, then "(other)") and reason
//	weft_updates_dropped_total    counter    updates whose sender was gone before they took effect
//	weft_shadowed_elements        gauge      map elements that another fragment's value hides
//	weft_drift_repairs_total      counter    commits that repaired what others changed
//	weft_flows_flushed_total      counter    UDP conntrack entries removed
//	weft_flow_flush_errors_total  counter    removals that did not succeed
//	weft_affinity_purged_total    counter    entries of affinity maps removed as no rule makes them any more
//	weft_affinity_errors_total    counter    removals that did not succeed
//	weft_sessions                 gauge      open Publish streams
//	weft_revision                 gauge      number of the last commit
//	weft_state_errors_total       counter    files of the state directory that failed, by kind
//	weft_unrepaired_tables        gauge      tables that the kernel refuses to have repaired
//	weft_aggregator_work_total    counter    what the writer looked at, by kind: keys (elements), rules,
//	                                         objects (chains and sets), dumps (of the kernel, whole), records
//
// The daemon adds weft_build_info, and the process's own.
//
// # Health
//
// Healthy says whether updates are committed or will be; it is for the decision
// to restart the process. Settled is stricter, for the decision to send traffic
// to the node: after a restart it waits until the publishers of before are back,
// or Config.ReadyGrace is over.
//
// # Errors
//
// A refused update is a *RejectedError. The other conditions are the sentinels
// in errors.go. Match with errors.Is and errors.As.
package aggregator
