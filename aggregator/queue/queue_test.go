package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// update is an update of a test.
type update struct {
	publisher string
	number    int
	cost      int
}

func (u *update) Publisher() string { return u.publisher }
func (u *update) Size() int         { return u.cost }
func (*update) Queued(at time.Time) {}
func cost(u *update) int            { return u.cost }

// enqueue queues updates written as "publisher:cost", in this order.
func enqueue(q *Queue[*update], updates string) {
	for i, f := range strings.Fields(updates) {
		var cost int
		name, size, _ := strings.Cut(f, ":")
		if _, err := fmt.Sscan(size, &cost); err != nil {
			panic(err)
		}
		q.Put(&update{publisher: name, number: i, cost: cost})
	}
}

// drained takes everything, and writes it as "a0 b1 | a2": publishers and numbers
// of updates, with bars between the batches.
func drained(q *Queue[*update]) string {
	var batches []string
	for {
		var names []string
		for _, s := range q.Take(cost) {
			names = append(names, fmt.Sprint(s.publisher, s.number))
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
			q := New[*update](time.Now, noLimits)
			enqueue(q, tt.updates)
			if n := len(strings.Fields(tt.updates)); q.Len() != n {
				t.Fatalf("%d wait: want %d", q.Len(), n)
			}
			if got := drained(q); got != tt.want {
				t.Fatalf("batches %q: want %q", got, tt.want)
			}
			if q.Len() != 0 || len(q.lanes) != 0 {
				t.Fatalf("%d wait, lanes %v", q.Len(), q.lanes)
			}
		})
	}
}

func TestClosedQueueReturnsWhatIsLeft(t *testing.T) {
	q := New[*update](time.Now, noLimits)
	enqueue(q, "a:1 b:1 a:9000")
	if left := q.Close(); len(left) != 3 || q.Put(left[0]) || q.Len() != 0 {
		t.Fatalf("%d left, %d wait after the end", len(left), q.Len())
	}
}
