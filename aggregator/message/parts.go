package message

import "google.golang.org/protobuf/proto"

// PartBytes is about how much one message of a streamed answer holds. A stream that is not
// read holds three of them: one in the transport, one encoded and one that is being made.
const PartBytes = 128 << 10

// entryOverhead is what an entry of a repeated field costs beside its own bytes.
const entryOverhead = 6

// parts divides an answer into messages of about limit bytes.
type parts[M proto.Message] struct {
	limit, size int
	yield       func(M) bool
	// part is the present message, and next returns the one after it.
	part M
	next func() M
	// done is true when no more messages are wanted.
	done bool
}

// fit is called before an entry is added to the present message. If that is full, fit
// sends it and begins another one. Then it returns true, so that the caller opens
// what the entry belongs to in the new message.
func (p *parts[M]) fit(entry proto.Message) (begun bool) {
	if p.size >= p.limit {
		p.send()
		p.part, p.size, begun = p.next(), 0, true
	}
	p.size += proto.Size(entry) + entryOverhead
	return begun
}

// send sends the present message, if it is wanted.
func (p *parts[M]) send() { p.done = p.done || !p.yield(p.part) }
