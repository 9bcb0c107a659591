package nri

import (
	"encoding/binary"
	"testing"
)

// FuzzChecker checks a stream in one part and in parts of one size, which must not matter.
func FuzzChecker(f *testing.F) {
	request := append(binary.BigEndian.AppendUint32(nil, 3), 0, 0, 0, 1, requestMessage, 0, 'a', 'b', 'c')
	f.Add(append(request, request...), uint8(1))
	f.Add(append(request, request[:4]...), uint8(7))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, requestMessage, 0}, uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		run := func(size int) (messages int, failed bool) {
			c := checkMessages(requestMessage, func() error { messages++; return nil })
			for rest := stream; len(rest) > 0; {
				n := min(size, len(rest))
				if err := c.next(rest[:n]); err != nil {
					return messages, true
				}
				rest = rest[n:]
			}
			return messages, false
		}
		whole, failed := run(len(stream) + 1)
		if n, also := run(int(size) + 1); n != whole || also != failed {
			t.Errorf("%d messages, failed %v; in parts of %d bytes %d, %v", whole, failed, int(size)+1, n, also)
		}
		if whole > len(stream)/messageHeader {
			t.Errorf("%d messages in %d bytes", whole, len(stream))
		}
	})
}
