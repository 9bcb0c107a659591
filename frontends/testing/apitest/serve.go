package apitest

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	place := parsePlace(r.URL.Path)
	if r.URL.Path == "/version" {
		s.serveRelease(w)
		return
	}
	k := s.kindOfResource(place.version.WithResource(place.resource))
	if k == nil {
		http.NotFound(w, r)
		return
	}
	enc, err := newEncoder(r, k.gvk.GroupVersion(), k.types)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotAcceptable)
		return
	}
	if r.Method != http.MethodGet {
		s.write(w, r, enc, k, place)
		return
	}
	q := Request{Resource: place.resource, Verb: "list", Query: r.URL.Query(), Header: r.Header.Clone()}
	switch {
	case place.name != "":
		q.Verb = "get"
	case q.Query.Get("sendInitialEvents") == "true":
		q.Verb = "stream"
	case q.Query.Has("watch"):
		q.Verb = "watch"
	}
	chosen, err := parseSelection(q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f := s.admit(&q)
	if f.before(r.Context(), w, enc) {
		return
	}
	w = f.limit(w)
	switch q.Verb {
	case "get":
		s.one(w, enc, k, place)
	case "list":
		s.list(w, enc, k, chosen, q)
	default:
		s.watch(r.Context(), w, enc, k, chosen, q, f)
	}
}

// serveRelease writes the status of a fault, without its other parts.
func (s *Server) serveRelease(w http.ResponseWriter) {
	if f := s.admit(&Request{Resource: "version", Verb: "get"}); f.Status != 0 {
		w.WriteHeader(f.Status)
		return
	}
	s.mu.Lock()
	major, minor, _ := strings.Cut(s.release, ".")
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(version.Info{Major: major, Minor: minor})
}

func (s *Server) admit(q *Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.N = 1
	for _, r := range s.requests {
		if r.Resource == q.Resource && r.Verb == q.Verb {
			q.N++
		}
	}
	s.requests = append(s.requests, *q)
	if s.fault == nil {
		return Fault{}
	}
	return s.fault(*q)
}

func (s *Server) one(w http.ResponseWriter, enc encoder, k *kind, p place) {
	s.mu.Lock()
	o := k.objects[p.namespace+"/"+p.name]
	s.mu.Unlock()
	if o == nil {
		enc.object(w, http.StatusNotFound, statusOf(http.StatusNotFound, 0))
		return
	}
	enc.object(w, http.StatusOK, o)
}

type selection struct {
	labels labels.Selector
	fields fields.Selector
}

func parseSelection(q Request) (selection, error) {
	l, err := labels.Parse(q.Query.Get("labelSelector"))
	if err != nil {
		return selection{}, err
	}
	f, err := fields.ParseSelector(q.Query.Get("fieldSelector"))
	return selection{labels: l, fields: f}, err
}

func (s selection) has(o Object) bool {
	if o == nil {
		return false
	}
	return s.labels.Matches(labels.Set(o.GetLabels())) && s.fields.Matches(fieldsOf{o})
}

// fieldsOf needs no map, because a list reads the fields of many objects.
type fieldsOf struct{ Object }

func (f fieldsOf) Has(field string) bool {
	_, ok := f.get(field)
	return ok
}

func (f fieldsOf) Get(field string) string {
	value, _ := f.get(field)
	return value
}

func (f fieldsOf) get(field string) (value string, ok bool) {
	switch field {
	case "metadata.name":
		return f.GetName(), true
	case "metadata.namespace":
		return f.GetNamespace(), true
	}
	switch o := f.Object.(type) {
	case *corev1.Service:
		if field == "spec.clusterIP" {
			return o.Spec.ClusterIP, true
		}
	case *corev1.Pod:
		switch field {
		case "spec.nodeName":
			return o.Spec.NodeName, true
		case "spec.hostNetwork":
			return strconv.FormatBool(o.Spec.HostNetwork), true
		case "status.phase":
			return string(o.Status.Phase), true
		case "status.podIP":
			return o.Status.PodIP, true
		}
	}
	return "", false
}

func (s *Server) selected(k *kind, chosen selection) ([]runtime.Object, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []runtime.Object
	for _, key := range slices.Sorted(maps.Keys(k.objects)) {
		if o := k.objects[key]; chosen.has(o) {
			out = append(out, o)
		}
	}
	return out, s.version
}

func (s *Server) list(w http.ResponseWriter, enc encoder, k *kind, chosen selection, q Request) {
	objects, version := s.selected(k, chosen)
	next := ""
	// Like an API server, page only lists not from the cache.
	if limit, _ := strconv.Atoi(q.Query.Get("limit")); limit > 0 && q.Query.Get("resourceVersion") != "0" {
		from, _ := strconv.Atoi(q.Query.Get("continue"))
		from = min(from, len(objects))
		to := min(from+limit, len(objects))
		if to < len(objects) {
			next = strconv.Itoa(to)
		}
		objects = objects[from:to]
	}
	list := k.list(objects)
	if l, ok := list.(metav1.ListInterface); ok {
		l.SetResourceVersion(strconv.Itoa(version))
		l.SetContinue(next)
	}
	enc.object(w, http.StatusOK, list)
}

func (s *Server) watch(ctx context.Context, w http.ResponseWriter, enc encoder, k *kind, chosen selection, q Request, f Fault) {
	stream := enc.stream(w)
	if f.Event != nil {
		stream.send(watch.Error, f.Event)
		return
	}
	at, _ := strconv.Atoi(q.Query.Get("resourceVersion"))
	if q.Verb == "stream" || at == 0 {
		objects, version := s.selected(k, chosen)
		for _, o := range objects {
			stream.send(watch.Added, o)
		}
		if q.Verb == "stream" {
			stream.send(watch.Bookmark, bookmark(k, version))
		}
		at = version
	}
	stream.flush()
	for stream.err == nil {
		s.mu.Lock()
		changed, news, version, gone := s.changed, k.after(at), s.version, at < k.compacted
		s.mu.Unlock()
		if gone {
			stream.send(watch.Error, Expired())
			return
		}
		for _, c := range news {
			had, has := chosen.has(c.before), chosen.has(c.after)
			switch {
			case had && has:
				stream.send(watch.Modified, c.after)
			case has:
				stream.send(watch.Added, c.after)
			case had:
				stream.send(watch.Deleted, c.last())
			}
		}
		// Later compacted changes have been sent.
		at = version
		stream.flush()
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// The caller of after holds the server's lock.
func (k *kind) after(version int) []change {
	at, _ := slices.BinarySearchFunc(k.history, version+1, func(c change, v int) int { return cmp.Compare(c.version, v) })
	return slices.Clone(k.history[at:])
}

func (c change) last() Object {
	o := c.before.DeepCopyObject().(Object) //nolint:forcetypeassert // a copy of one
	o.SetResourceVersion(strconv.Itoa(c.version))
	return o
}

// bookmark ends the first objects of a stream.
func bookmark(k *kind, version int) Object {
	o := k.empty()
	o.SetResourceVersion(strconv.Itoa(version))
	o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return o
}
