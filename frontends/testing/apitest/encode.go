package apitest

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

type encoder struct {
	types types
	info  runtime.SerializerInfo
	group schema.GroupVersion
}

func newEncoder(r *http.Request, group schema.GroupVersion, t types) (encoder, error) {
	accept := r.Header.Get("Accept")
	for _, one := range strings.Split(accept, ",") {
		media, _, _ := strings.Cut(strings.TrimSpace(one), ";")
		if t.scheme != scheme.Scheme && media != runtime.ContentTypeJSON {
			continue
		}
		if info, ok := runtime.SerializerInfoForMediaType(t.codecs.SupportedMediaTypes(), media); ok {
			return encoder{types: t, info: info, group: group}, nil
		}
	}
	return encoder{}, fmt.Errorf("no supported type in Accept: %q", accept)
}

func (e encoder) bytes(o runtime.Object) []byte {
	group := e.group
	if _, ok := o.(*metav1.Status); ok {
		group = schema.GroupVersion{Version: "v1"}
	}
	// Encoding sets the kind in the object, which other answers share.
	b, err := runtime.Encode(e.types.codecs.EncoderForVersion(e.info.Serializer, group), o.DeepCopyObject())
	if err != nil {
		panic(fmt.Sprintf("apitest: encode %T: %v", o, err))
	}
	return b
}

func (e encoder) object(w http.ResponseWriter, code int, o runtime.Object) {
	w.Header().Set("Content-Type", e.info.MediaType)
	w.WriteHeader(code)
	_, _ = w.Write(e.bytes(o))
}

func (e encoder) stream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", e.info.MediaType+";stream=watch")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	events := e.types.codecs.EncoderForVersion(e.info.StreamSerializer.Serializer, schema.GroupVersion{Version: "v1"})
	return &stream{enc: e, w: w, out: streaming.NewEncoder(e.info.StreamSerializer.NewFrameWriter(w), events)}
}

// err is set once the connection is closed.
type stream struct {
	enc encoder
	w   http.ResponseWriter
	out streaming.Encoder
	err error
}

func (s *stream) send(kind watch.EventType, o runtime.Object) {
	if s.err != nil {
		return
	}
	raw := bytes.TrimSpace(s.enc.bytes(o))
	s.err = s.out.Encode(&metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: raw}})
}

// A watch calls flush only when it is idle, like an API server.
func (s *stream) flush() {
	if s.err == nil {
		s.err = http.NewResponseController(s.w).Flush()
	}
}
