package statuspage

import (
	"context"
	"fmt"
	"net/http"

	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/cmd/weft/get"
)

// field is an input of a form with its label.
func field(label, name, value, hint string) node {
	return el("label", text(label+" "), el("input").with("name", name, "value", value, "placeholder", hint))
}

// showServices lists the Services that a word is in, and the endpoints of one.
func (p *Page) showServices(w http.ResponseWriter, r *http.Request) {
	word, name := r.URL.Query().Get("q"), r.URL.Query().Get("name")
	form := el("form", field("Name or namespace", "q", word, "web"), el("button", text("Find")))
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	below := list{el("h1", text("Services")), form}
	if name != "" {
		below = append(below, p.endpoints(ctx, name))
	} else {
		below = append(below, p.services(ctx, word))
	}
	p.write(w, "Services", nil, el("main", below))
}

// services lists Services.
func (p *Page) services(ctx context.Context, word string) node {
	found, err := get.FindServices(ctx, &p.conn, word, maxRows)
	if err != nil {
		return el("p", text(err.Error())).with("class", "bad")
	}
	links := cli.Map(found.Names, func(name string) node {
		return list{el("a", text(name)).with("href", Root+"services?name="+name), text(" ")}
	})
	c := found.Counters
	return list{
		el("p", text(fmt.Sprintf("%d of %d Services. Received: %d changes of Services, %d of EndpointSlices; %d changes made.",
			found.Matched, found.Of, c.GetServiceEvents(), c.GetSliceEvents(), c.GetServiceChanges()))),
		table(found.Rows), notes(found.Rows),
		el("h2", text("Endpoints of")), el("p", links...),
	}
}

// endpoints lists the endpoints of a Service.
func (p *Page) endpoints(ctx context.Context, name string) node {
	key, err := get.ParseServiceName(name)
	var rows *get.Rows
	if err == nil {
		rows, err = get.Endpoints(ctx, &p.conn, key)
	}
	if err != nil {
		return el("p", text(err.Error())).with("class", "bad")
	}
	return list{section("Endpoints of "+key.String(), rows), notes(rows)}
}

// notes lists why rows are not in force.
func notes(rows *get.Rows) node {
	return list(cli.Map(rows.Notes, func(n string) node { return el("p", text(n)).with("class", "bad") }))
}
