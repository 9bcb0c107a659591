package statuspage

import (
	"context"
	"fmt"
	"net/http"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
	"github.com/weft-proxy/weft/cmd/weft/get"
)

const (
	// maxCommits and maxRows bound the page.
	maxCommits = 20
	maxRows    = 200
)

// overview is what the aggregator has, and the conditions of the node's processes, read at once.
type overview struct {
	at         time.Time
	Processes  []*conditions.Process
	Fragments  *weftv1.ListFragmentsResponse
	Publishers *weftv1.ListPublishersResponse
	history    *weftv1.ListRevisionsResponse
	// Err is why there is nothing, and NoHistory why there is no history.
	Err, NoHistory error
}

// read returns what the aggregator has, at most maxAge ago.
func (p *Page) read(ctx context.Context) *overview {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && time.Since(p.last.at) < maxAge {
		return p.last
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o := &overview{}
	o.Err = p.conn.Do(ctx, func(c *client.Client) (err error) {
		if o.Processes, err = get.ReadStatus(ctx, &p.conn); err != nil {
			return err
		}
		if o.Fragments, err = c.List(ctx); err != nil {
			return err
		}
		if o.Publishers, err = c.ListPublishers(ctx); err != nil {
			return err
		}
		o.history, o.NoHistory = c.ListRevisions(ctx, &weftv1.ListRevisionsRequest{Limit: maxCommits})
		return nil
	})
	o.at = time.Now()
	if ctx.Err() == nil {
		p.last = o
	}
	return o
}

// showOverview shows the node.
func (p *Page) showOverview(w http.ResponseWriter, r *http.Request) {
	p.write(w, "status", p.read(r.Context()))
}

// State is the worst one of the processes.
func (o *overview) State() (worst conditions.State) {
	for _, p := range o.Processes {
		worst = max(worst, p.State())
	}
	return worst
}

// Findings returns the findings of fragments, each once.
func (o *overview) Findings() (out []*weftv1.Finding) {
	seen := make(map[string]bool)
	for _, f := range o.Fragments.GetFragments() {
		for _, found := range f.GetFindings() {
			// Both parties have it, each with its own rules.
			key := found.GetId() + found.GetExample() + found.GetSubject().Text() + " " + found.GetOther().Text()
			if !seen[key] && len(out) < maxRows {
				seen[key] = true
				out = append(out, found)
			}
		}
	}
	return out
}

// Rejections returns the last rejection of each publisher.
func (o *overview) Rejections() []string {
	out := get.Publishers(o.Publishers, o.at).Notes
	return out[:min(len(out), maxRows)]
}

// ConditionRows, PublisherRows and FragmentRows return the tables of weft get.
func (o *overview) ConditionRows() *get.Rows { return get.Status(o.Processes, o.at) }
func (o *overview) PublisherRows() *get.Rows { return get.Publishers(o.Publishers, o.at) }
func (o *overview) FragmentRows() *get.Rows {
	return get.Fragments(o.Fragments.GetFragments(), 0, o.at)
}

// CommitRows returns the last commits.
func (o *overview) CommitRows() *get.Rows {
	t := &get.Rows{Columns: []string{"REVISION", "TIME", "FRAGMENTS", "BYTES", "WAIT", "BUILD", "KERNEL", "ELEMENTS", "RULES"}}
	for _, r := range o.history.GetRevisions() {
		names := cli.Map(r.GetFragments(), func(f *weftv1.FragmentChange) string { return f.GetFragment().Text() })
		c := r.GetChanges()
		t.Add(r.GetRevision(), r.GetTime().AsTime().Local().Format(time.DateTime), cli.Some(names), r.GetSize(),
			short(r.GetWait().AsDuration()), short(r.GetBuild().AsDuration()), short(r.GetKernel().AsDuration()),
			fmt.Sprintf("+%d -%d", c.GetElementsAdded(), c.GetElementsDeleted()), fmt.Sprintf("+%d -%d", c.GetRulesAdded(), c.GetRulesDeleted()))
	}
	return t
}

// short returns a duration in milliseconds.
func short(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
