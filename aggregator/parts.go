package aggregator

import "google.golang.org/protobuf/proto"

// partBytes is about how much one message of a streamed answer holds.
const partBytes = 1 << 20

// entryOverhead is what an entry of a repeated field costs beside its own bytes.
const entryOverhead = 6

// parts divides an answer into messages of about limit bytes.
type parts struct {
	limit, size int
	// send sends the present message and begins the next one. It returns false if no
	// more are wanted.
	send func() bool
}

// fit is called before an entry is added. It sends the present message if that is
// full, and then reports next, so that the caller opens what the entry belongs to in
// the next message. Stop means that no more are wanted.
func (p *parts) fit(entry proto.Message) (next, stop bool) {
	if p.size >= p.limit {
		p.size, next = 0, true
		stop = !p.send()
	}
	p.size += proto.Size(entry) + entryOverhead
	return next, stop
}
