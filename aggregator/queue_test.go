package aggregator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-proxy/weft/aggregator/desired"
)

// enqueue queues updates written as "publisher:cost", in this order.
func enqueue(q *queue, costs map[*submission]int, updates string) {
	for i, f := range strings.Fields(updates) {
		var cost int
		name, size, _ := strings.Cut(f, ":")
		if _, err := fmt.Sscan(size, &cost); err != nil {
			panic(err)
		}
		s := &submission{update: &desired.Update{Fragment: desired.Key{Publisher: name, Name: fmt.Sprint(i)}}}
		costs[s] = cost
		q.put(s)
	}
}

// drained takes everything, and writes it as "a0 b1 | a2": publishers and numbers
// of updates, with bars between the batches.
func drained(q *queue, costs map[*submission]int) string {
	var batches []string
	for {
		var names []string
		for _, s := range q.take(func(s *submission) int { return costs[s] }) {
			names = append(names, s.key().Publisher+s.key().Name)
		}
		if names == nil {
			return strings.Join(batches, " | ")
		}
		batches = append(batches, strings.Join(names, " "))
	}
}

func TestLanes(t *testing.T) {
	tests := []struct{ name, updates, want string }{
		{"nothing", "", ""},
		{"small ones of all publishers share a commit", "a:1 b:1 a:1 c:4095", "a0 a2 b1 c3"},
		{"a large one goes alone, after the small ones", "a:4096 b:1 c:1", "b1 c2 | a0"},
		{"what is behind a large one waits for it", "a:1 a:5000 a:2 b:1", "a0 b3 | a1 | a2"},
		{"small and large ones take turns", "a:5000 b:1 b:6000 b:2 c:7000 c:3", "b1 | a0 | b2 | b3 | c4 | c5"},
		{"large ones go round", "a:5000 a:5000 a:5000 b:6000 b:6000", "a0 | b3 | a1 | b4 | a2"},
		{"noLimits has more than a share", "a:3000 a:3000 a:3000 b:1 b:1", "a0 a1 b3 b4 | a2"},
		{"who is alone has more", "a:3000 a:3000 a:3000 a:3000", "a0 a1 a2 a3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, costs := newQueue(time.Now, noLimits), map[*submission]int{}
			enqueue(q, costs, tt.updates)
			if n := len(strings.Fields(tt.updates)); q.len() != n {
				t.Fatalf("%d wait: want %d", q.len(), n)
			}
			if got := drained(q, costs); got != tt.want {
				t.Fatalf("batches %q: want %q", got, tt.want)
			}
			if q.len() != 0 || len(q.lanes) != 0 {
				t.Fatalf("%d wait, lanes %v", q.len(), q.lanes)
			}
		})
	}
}

func TestClosedQueueReturnsWhatIsLeft(t *testing.T) {
	q, costs := newQueue(time.Now, noLimits), map[*submission]int{}
	enqueue(q, costs, "a:1 b:1 a:9000")
	if left := q.close(); len(left) != 3 || q.put(left[0]) || q.len() != 0 {
		t.Fatalf("%d left, %d wait after the end", len(left), q.len())
	}
}
