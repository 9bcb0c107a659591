package message

import "google.golang.org/protobuf/proto"

// PartBytes is the approximate size of one message of a streamed answer. An unread stream holds three: one
// in the transport, one encoded and one being made.
const PartBytes = 128 << 10

// entryOverhead is the cost of an entry of a repeated field beside its own bytes.
const entryOverhead = 6

// parts divides an answer into messages of about limit bytes.
type parts[M proto.Message] struct {
	limit, size int
	yield       func(M) bool
	// part is the present message; next returns the following one.
	part M
	next func() M
	// done is true when no more messages are wanted.
	done bool
}

// fit is called before an entry is added to the present message. If the message is full, fit sends it,
// begins another one and returns true: the caller must then repeat the parents of the entry in the new
// message.
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
