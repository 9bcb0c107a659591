package explain

import (
	"context"
)

// Follower follows packets between addresses with the ruleset and the routes of this network
// namespace, many with one reading of the tables. It does not ask weft: its answers have neither
// the Service of a packet nor the owners of weft's rules. A Follower belongs to one goroutine.
type Follower struct {
	asker asker
	close func()
}

// OpenFollower reads the tables of the kernel.
func OpenFollower() (*Follower, error) {
	rules, closeRules, err := readRules("")
	if err != nil {
		return nil, err
	}
	return &Follower{asker: asker{host: newHost(), rules: rules}, close: closeRules}, nil
}

// Close ends the access to the kernel.
func (f *Follower) Close() { f.close() }

// Follow answers a question between "node", "outside" and addresses.
func (f *Follower) Follow(ctx context.Context, q Question) (*Answer, error) {
	_, answer, err := f.asker.follow(ctx, q)
	return answer, err
}

// Stopped returns the verdict and the last step of a way that a rule or a policy stops, or that
// of its reply. step is nil if nothing stops it, or no rule does.
func (w *Way) Stopped() (verdict string, step *Step, reply bool) {
	verdict, reason, steps := w.Verdict, w.Reason, w.Steps
	if verdict == wordAccept && w.Reply != nil {
		verdict, reason, steps, reply = w.Reply.Verdict, w.Reply.Reason, w.Reply.Steps, true
	}
	if verdict != wordDrop && verdict != wordReject || reason != "" || len(steps) == 0 {
		return verdict, nil, reply
	}
	return verdict, &steps[len(steps)-1], reply
}
