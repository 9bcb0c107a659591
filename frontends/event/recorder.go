package event

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/weft-proxy/weft/frontends/source/quiet"
)

const (
	Normal  = corev1.EventTypeNormal
	Warning = corev1.EventTypeWarning
)

// kube-proxy's reasons, the last for Services, the others for the Node.
const (
	Starting                        = "Starting"
	FailedToStartProxierHealthcheck = "FailedToStartProxierHealthcheck"
	FailedToStartMetricServer       = "FailedToStartMetricServer"
	FailedToStartServiceHealthcheck = "FailedToStartServiceHealthcheck"
)

const (
	controller = "weft"
	maxQueue   = 100
	// A burst, then one per interval: all nodes of a cluster may have the same event at once.
	burst    = 25
	interval = 5 * time.Second
	// the API's limit in bytes
	maxMessage = 1024
	// timeout for an object's UID
	lookup = 3 * time.Second
)

// Config configures a Recorder.
type Config struct {
	// nil means no API server: events are discarded
	Client kubernetes.Interface
	// required
	NodeName string
	// receives failed and dropped reports; nil discards
	Logger *slog.Logger
}

// Recorder reports events. A nil Recorder discards them.
type Recorder struct {
	client   kubernetes.Interface
	node     string
	log      *slog.Logger
	queue    chan report
	limiter  *rate.Limiter
	dropping rate.Sometimes
}

type report struct {
	regarding             corev1.ObjectReference
	kind, reason, message string
	action                string
}

// New returns a recorder without doing I/O.
func New(cfg Config) (*Recorder, error) {
	if cfg.NodeName == "" {
		return nil, errors.New("configure events: no node name")
	}
	return &Recorder{
		client: cfg.Client, node: cfg.NodeName, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)),
		queue:    make(chan report, maxQueue),
		limiter:  rate.NewLimiter(rate.Every(interval), burst),
		dropping: rate.Sometimes{Interval: time.Minute},
	}, nil
}

// Node reports an event about this node's proxy; see Service for the arguments.
func (r *Recorder) Node(kind, reason, message string) {
	r.onNode(kind, reason, "StartKubeProxy", message)
}

// Condition reports an event about a condition of this node. Events with the same condition and reason within
// minutes form one series with the first message.
func (r *Recorder) Condition(kind, reason, condition, message string) {
	r.onNode(kind, reason, condition, message)
}

func (r *Recorder) onNode(kind, reason, action, message string) {
	if r == nil {
		return
	}
	// kubectl searches for the UID that kube-proxy uses, the name.
	ref := corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: r.node, UID: types.UID(r.node)}
	r.put(report{regarding: ref, kind: kind, reason: reason, message: message, action: action})
}

// Service reports an event about a Service. kind is Normal or Warning, reason is one word. Events are dropped
// if the queue is full.
func (r *Recorder) Service(name types.NamespacedName, kind, reason, message string) {
	action := "Program"
	if reason == FailedToStartServiceHealthcheck {
		action = "Listen"
	}
	ref := corev1.ObjectReference{Kind: "Service", APIVersion: "v1", Namespace: name.Namespace, Name: name.Name, UID: types.UID(name.String())}
	r.put(report{regarding: ref, kind: kind, reason: reason, message: message, action: action})
}

// Object reports an event about any object; see Service. The UID of ref may be empty.
func (r *Recorder) Object(ref corev1.ObjectReference, kind, reason, message string) {
	if ref.UID == "" {
		ref.UID = types.UID(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}.String())
		if ref.Namespace == "" {
			ref.UID = types.UID(ref.Name)
		}
	}
	r.put(report{regarding: ref, kind: kind, reason: reason, message: message, action: "Program"})
}

func (r *Recorder) put(e report) {
	if r == nil || r.client == nil {
		return
	}
	select {
	case r.queue <- e:
	default:
		r.dropping.Do(func() {
			r.log.Warn("too many events for the API server: dropped", "kind", e.regarding.Kind, "namespace", e.regarding.Namespace,
				"name", e.regarding.Name, "reason", e.reason, "message", e.message)
		})
	}
}

// Run sends events until ctx ends, then drops queued events and returns nil.
func (r *Recorder) Run(ctx context.Context) error {
	if r == nil || r.client == nil {
		return nil
	}
	logger := logr.FromSlogHandler(quiet.New(r.log.With("component", "client-go").Handler()))
	ctx = klog.NewContext(ctx, logger)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: r.client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("report events: %w", err)
	}
	out := broadcaster.NewRecorder(scheme.Scheme, controller).WithLogger(logger)
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-r.queue:
			if r.limiter.Wait(ctx) != nil {
				return nil
			}
			r.identify(ctx, &e.regarding)
			out.Eventf(&e.regarding, nil, e.kind, e.reason, e.action, "%s", shorten(e.message))
		}
	}
}

// identify sets the object's real UID. "kubectl describe" finds the event by it.
func (r *Recorder) identify(ctx context.Context, ref *corev1.ObjectReference) {
	ctx, cancel := context.WithTimeout(ctx, lookup)
	defer cancel()
	var object metav1.Object
	var err error
	switch ref.Kind {
	case "Service":
		object, err = r.client.CoreV1().Services(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	case "NetworkPolicy":
		object, err = r.client.NetworkingV1().NetworkPolicies(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	default:
		return
	}
	if err == nil {
		ref.UID = object.GetUID()
	}
}

func shorten(s string) string {
	const more = "..."
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage-len(more)], "") + more
}
