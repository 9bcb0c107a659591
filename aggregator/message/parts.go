package message

import "google.golang.org/protobuf/proto"

// PartBytes is the approximate size of a message in a streamed answer. An unread stream keeps three
// messages in memory.
const PartBytes = 128 << 10

// entryOverhead is the cost of an entry beside its own bytes.
const entryOverhead = 6

type parts[M proto.Message] struct {
	limit, size int
	yield       func(M) bool
	part        M
	next        func() M
	// done is true when no more messages are wanted.
	done bool
}

// fit is called before an entry is added. If fit begins another message, it returns true: the caller must
// then repeat the parents of the entry.
func (p *parts[M]) fit(entry proto.Message) (begun bool) {
	if p.size >= p.limit {
		p.send()
		p.part, p.size, begun = p.next(), 0, true
	}
	p.size += proto.Size(entry) + entryOverhead
	return begun
}

func (p *parts[M]) send() { p.done = p.done || !p.yield(p.part) }
