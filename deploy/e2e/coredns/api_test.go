package main

import (
	"fmt"
	"net/http"
)

// objects is an API server with constant objects: lists by path.
type objects map[string]struct{ version, kind, items string }

// ServeHTTP does not send a list as the beginning of a watch, so that clients ask for the list.
func (o objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	list, ok := o[r.URL.Path]
	query := r.URL.Query()
	switch {
	case !ok:
		http.NotFound(w, r)
	case query.Get("sendInitialEvents") != "":
		http.Error(w, "sendInitialEvents is not supported", http.StatusUnprocessableEntity)
	case query.Get("watch") != "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // an error means that the client has gone
		<-r.Context().Done()
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1"},"items":[%s]}`, list.version, list.kind, list.items)
	}
}
