package apitest

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The last write wins.
func (s *Server) write(w http.ResponseWriter, r *http.Request, enc encoder, k *kind, place place) {
	if r.Method == http.MethodDelete {
		o := k.empty()
		o.SetNamespace(place.namespace)
		o.SetName(place.name)
		s.Delete(o)
		enc.object(w, http.StatusOK, &metav1.Status{Status: metav1.StatusSuccess})
		return
	}
	o, err := decode(r, k.types)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o.SetNamespace(place.namespace)
	s.Set(o)
	s.mu.Lock()
	stored := k.objects[name(o)]
	s.mu.Unlock()
	code := http.StatusOK
	if r.Method == http.MethodPost {
		code = http.StatusCreated
	}
	enc.object(w, code, stored)
}

func decode(r *http.Request, t types) (Object, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	decoded, err := runtime.Decode(t.codecs.UniversalDeserializer(), b)
	if err != nil {
		return nil, err
	}
	o, ok := decoded.(Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", decoded)
	}
	return o, nil
}

type place struct {
	version                   schema.GroupVersion
	namespace, resource, name string
}

// parsePlace parses /api/v1/RESOURCE/NAME/status and
// /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME.
func parsePlace(path string) place {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var p place
	switch {
	case parts[0] == "api" && len(parts) > 1:
		p.version.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 2:
		p.version, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		p.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 0 {
		p.resource = parts[0]
	}
	if len(parts) > 1 {
		p.name = parts[1]
	}
	return p
}
