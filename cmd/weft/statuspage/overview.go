package statuspage

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/conditions"
	"github.com/weft-proxy/weft/cmd/weft/get"
)

const (
	maxCommits = 20
	maxRows    = 200
)

type overview struct {
	at         time.Time
	processes  []*conditions.Process
	fragments  *weftv1.ListFragmentsResponse
	publishers *weftv1.ListPublishersResponse
	history    *weftv1.ListRevisionsResponse
	// why all data, or the history, is missing
	err, noHistory error
}

// read returns an overview that is at most maxAge old.
func (p *Page) read(ctx context.Context) *overview {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last != nil && time.Since(p.last.at) < maxAge {
		return p.last
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o := &overview{}
	o.err = p.conn.Do(ctx, func(c *client.Client) (err error) {
		if o.processes, err = get.ReadStatus(ctx, &p.conn); err != nil {
			return err
		}
		if o.fragments, err = c.List(ctx); err != nil {
			return err
		}
		if o.publishers, err = c.ListPublishers(ctx); err != nil {
			return err
		}
		o.history, o.noHistory = c.ListRevisions(ctx, &weftv1.ListRevisionsRequest{Limit: maxCommits})
		return nil
	})
	o.at = time.Now()
	if ctx.Err() == nil {
		p.last = o
	}
	return o
}

func (p *Page) showOverview(w http.ResponseWriter, r *http.Request) {
	o := p.read(r.Context())
	live := list{headline(o)}
	if o.err == nil {
		publishers := get.Publishers(o.publishers, o.at)
		live = append(live, findings(o.fragments.GetFragments()), rejections(publishers.Notes),
			section("Conditions", get.Status(o.processes, o.at)), section("Publishers", publishers),
			section("Fragments", get.Fragments(o.fragments.GetFragments(), 0, o.at)),
			commits(o))
	}
	p.write(w, "Status", live, nil)
}

func headline(o *overview) node {
	if o.err != nil {
		return el("h1", text(fmt.Sprintf("weft does not answer: %v.", o.err))).with("class", "bad")
	}
	worst, items := conditions.OK, list{}
	for _, p := range o.processes {
		worst = max(worst, p.State())
		for _, c := range p.Wrong() {
			items = append(items, el("li", el("p", el("strong", text(c.Name)), text(fmt.Sprintf(" of weft %s is %s: %s", p.Process, c.State, c.Message))), el("p", text("Remedy: "+c.Remedy+"."))))
		}
	}
	if worst == conditions.OK {
		return el("h1", text(fmt.Sprintf("This node is ready: revision %d has %d fragments of %d publishers.",
			o.fragments.GetRevision(), len(o.fragments.GetFragments()), len(o.publishers.GetPublishers())))).with("class", "good")
	}
	return list{el("h1", text(fmt.Sprintf("This node is %s.", worst))).with("class", "bad"), el("ul", items).with("class", "bad")}
}

func findings(fragments []*weftv1.FragmentStatus) node {
	items := list{}
	seen := make(map[string]bool)
	for _, f := range fragments {
		for _, found := range f.GetFindings() {
			// Both parties have it, each with its own rules.
			key := found.GetId() + found.GetExample() + found.GetSubject().Text() + " " + found.GetOther().Text()
			if seen[key] || len(items) == maxRows {
				continue
			}
			seen[key] = true
			item := el("li", el("p", el("strong", text(found.GetId())), text(": "+found.GetText()+". "+found.GetRemedy()+".")), el("p", text(strings.Join(found.GetRules(), "; "))))
			if found.GetExample() != "" {
				item.children = append(item.children, el("p", text("For example: "+found.GetExample())))
			}
			items = append(items, item)
		}
	}
	if len(items) == 0 {
		return list{el("h2", text("Findings")), el("p", text("None."))}
	}
	return list{el("h2", text(fmt.Sprintf("Findings (%d)", len(items)))), el("ul", items)}
}

func rejections(texts []string) node {
	title := el("h2", text("Rejected updates and conflicts"))
	if len(texts) == 0 {
		return list{title, el("p", text("None."))}
	}
	items := cli.Map(texts[:min(len(texts), maxRows)], func(t string) node { return el("li", el("p", text(t))) })
	return list{title, el("ul", items...).with("class", "bad")}
}

func commits(o *overview) node {
	if o.noHistory != nil {
		return list{el("h2", text("Commits")), el("p", text(o.noHistory.Error()))}
	}
	return section("Commits", get.Revisions(o.history.GetRevisions(), 0))
}

func section(title string, t *get.Rows) node { return list{el("h2", text(title)), table(t)} }

func table(t *get.Rows) node {
	if len(t.Rows) == 0 {
		return el("p", text("None."))
	}
	head := cli.Map(t.Columns, func(c string) node { return el("th", text(c[:1]+strings.ToLower(c[1:]))).with("scope", "col") })
	rows := cli.Map(t.Rows[:min(len(t.Rows), maxRows)], func(row []string) node {
		return el("tr", cli.Map(row, func(c string) node { return el("td", text(c)) })...)
	})
	out := list{el("div", el("table", el("thead", el("tr", head...)), el("tbody", rows...))).with("class", "table")}
	if n := len(t.Rows) - maxRows; n > 0 {
		out = append(out, el("p", text(fmt.Sprintf("And %d more.", n))))
	}
	return out
}
