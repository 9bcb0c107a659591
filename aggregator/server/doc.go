// Package server answers gRPC calls for an aggregator on a Unix socket. The kernel identifies the
// peer.
//
// It turns calls into calls of aggregator.Aggregator, and results into gRPC status codes. Read
// server.go first, then intercept.go and publish.go.
//
// The package decides who may call and maps errors to gRPC codes (only in status.go). A
// panic in a handler ends one call, not the daemon. A stream is not read while its client does not
// read answers. Package aggregator interprets updates.
//
// Package access decides who may call and under which names, for each call, and for open streams
// when the configuration changes. Without a configuration, peers with uid 0 or the daemon's uid may
// call under any publisher name; others get PERMISSION_DENIED. This package enforces a publisher's
// rate: streams wait for their turn, and a call with a long wait is refused. Refusals are counted,
// and logged with the peer.
//
// The service Flows (flows.go) bypasses the aggregator. It reads and changes the kernel's
// connection tracking table, in turns (aggregator/turns), over its own connection to the kernel.
//
// The service Tables (tables.go) relays tables of publishers to readers. It keeps no rows.
//
// # Limits of hostile callers
//
// gRPC's options limit the calls of a connection (MaxConcurrentStreams), the window of a call
// (InitialWindowSize, at least 64 KiB), metadata (MaxHeaderListSize), one message
// (MaxRecvMsgSize), the time to the HTTP/2 preface (ConnectionTimeout), silent connections
// (KeepaliveParams) and pings (KeepaliveEnforcementPolicy). gRPC itself stops to read from a
// client that does not read answers. The rest is here. Each part names the tests that fail
// without it; tests of cmd/weft/attack are marked.
//
//   - receive.go limits the data that has arrived and that handlers have not received, of one
//     publisher and of all. gRPC buffers MaxRecvMsgSize for each call, which is 4 GiB for one
//     connection, and no option limits calls together. TestUnfinishedCalls (attack),
//     TestUnfinishedMessages.
//   - decode.go measures a request before it is decoded: 14 MiB can be 7 million tables.
//     TestEmptyTables (attack), TestTooLargeToDecode. Large requests of a publisher take turns:
//     TestLargeRequestsTakeTurns.
//   - inflight.go limits the updates of a stream without acknowledgements, and the snapshots
//     without an end: TestInFlight, TestUnfinishedSnapshotsAreBounded.
//   - connections.go limits the connections of a user and of all, because gRPC accepts each one:
//     TestIdleConnections (attack), TestConnectionLimits, TestUnidentifiedConnections. A refused
//     connection stays for a moment, so that its calls fail with the reason:
//     TestTooManyConnections, TestStrangersAreTold.
//   - streams.go limits the streams of a user over all connections: TestStreamLimits.
//   - reads.go and callturns.go limit the time of calls that read: TestReadLoops, TestHistoryLoops
//     (attack).
//
// # A new call
//
// A new call touches these files, in this order:
//
//  1. aggregator/api/v1/weft.proto: the call and its messages; then "make generate".
//  2. aggregator/api/v1/PROTOCOL.md: its use. A test fails if a call is missing.
//  3. A file of package aggregator: the implementation. It reads the writer's state with
//     Aggregator.ask, and returns large answers in parts.
//  4. A file of this package: inspect.go for a call that reads, methods.go for one that
//     changes. Interceptors have authorized the caller; callerFrom returns it. A call
//     that counts as an update also goes into the table updates in policy.go.
//  5. A file of aggregator/client, with the possible errors.
//  6. The list of calls in fuzz_test.go. A test fails if a call is missing.
//  7. A verb in cmd/weft, if people need the call.
//
// If the call is optional, Aggregator.Features gets a name for it.
//
// # Concurrency
//
// Server is safe for concurrent use. Every call runs on its own goroutine; a Publish stream has two
// more, for receiving and for acknowledgements.
//
// # Errors
//
// Errors of Listen name the socket's path and the remedy. Possible sentinels: ErrInUse,
// ErrNotSocket, ErrForeignSocket.
package server
