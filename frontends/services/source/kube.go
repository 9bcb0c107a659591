package source

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// Server-side filters, as kube-proxy's: Services that another proxy implements,
// and headless ones with their slices, never reach the node (rule 104).
const (
	proxyNameLabel   = "service.kubernetes.io/service-proxy-name"
	serviceSelector  = "!" + proxyNameLabel
	serviceFields    = "spec.clusterIP!=" + corev1.ClusterIPNone
	sliceSelector    = "!" + corev1.IsHeadlessService
	protobufContent  = "application/vnd.kubernetes.protobuf"
	acceptedContents = protobufContent + ",application/json"
)

// KubeConfig says which API server to follow, and as which node.
type KubeConfig struct {
	// Kubeconfig is the path of a kubeconfig file. Empty means the service
	// account of the pod that this runs in.
	Kubeconfig string
	// Client is used in place of Kubeconfig if it is given.
	Client kubernetes.Interface
	// NodeName is the name of the Node object to follow. Required.
	NodeName string
	// UserAgent names the client in the API server's logs; empty means "weft".
	UserAgent string
	// Logger also takes what client-go logs, but for what it gives to klog's
	// global logger; nil discards.
	Logger *slog.Logger
}

// Kube is the Kubernetes API as a source.
type Kube struct {
	client kubernetes.Interface
	node   string
	log    *slog.Logger
}

// NewKube returns a source. It reads the kubeconfig but does not connect.
func NewKube(cfg KubeConfig) (*Kube, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.NodeName == "" {
		return nil, errors.New("configure kubernetes source: no node name")
	}
	k := &Kube{client: cfg.Client, node: cfg.NodeName, log: cfg.Logger}
	if k.client != nil {
		return k, nil
	}
	rc, err := restConfig(cfg.Kubeconfig)
	if err != nil {
		return nil, err
	}
	rc.UserAgent = cfg.UserAgent
	if rc.UserAgent == "" {
		rc.UserAgent = "weft"
	}
	rc.ContentType, rc.AcceptContentTypes = protobufContent, acceptedContents
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &reach{next: next, server: rc.Host, log: k.log}
	})
	if k.client, err = kubernetes.NewForConfig(rc); err != nil {
		return nil, fmt.Errorf("configure kubernetes source: %w", err)
	}
	return k, nil
}

func restConfig(path string) (*rest.Config, error) {
	if path == "" {
		rc, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("read service account: %w: outside of a pod give --kubeconfig or --manifests", err)
		}
		return rc, nil
	}
	rc, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	return rc, nil
}

// Run implements Source. An API server that does not answer, or not any more,
// is no error: the informers try again, and what was delivered stays.
func (k *Kube) Run(ctx context.Context, deliver func([]Event)) error {
	handler := k.log.With("component", "client-go").Handler()
	// client-go logs through the context where it has one, and elsewhere through
	// klog's global logger, which is the program's to set.
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(handler))
	factories, all := k.informers()
	synced := make([]cache.InformerSynced, 0, len(all))
	for _, i := range all {
		if err := i.informer.SetTransform(trim); err != nil {
			return fmt.Errorf("prepare informer: %w", err)
		}
		reg, err := i.informer.AddEventHandler(handlerOf(i, deliver))
		if err != nil {
			return fmt.Errorf("prepare informer: %w", err)
		}
		synced = append(synced, reg.HasSynced)
	}
	for _, f := range factories {
		f.StartWithContext(ctx)
	}
	defer stopInformers(factories)
	k.log.Info("following the kubernetes API", "node", k.node)
	// Only when all handlers have seen the initial lists is it known what
	// exists (rule 131).
	if cache.WaitForCacheSync(ctx.Done(), synced...) {
		deliver([]Event{Synced{}})
	}
	<-ctx.Done()
	return nil
}

// stopInformers waits for informers whose context has ended, but not for one
// that sleeps before it tries a dead API server again: that one has nothing to
// deliver any more.
func stopInformers(factories []informers.SharedInformerFactory) {
	done := make(chan struct{})
	go func() {
		for _, f := range factories {
			f.Shutdown()
		}
		close(done)
	}()
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
	}
}

// informer is an informer and how its objects become events.
type informer struct {
	informer cache.SharedIndexInformer
	set      func(obj any) (Event, bool)
	gone     func(name types.NamespacedName) Event
}

// informers returns one informer for each kind. Each kind has its own filter and
// so its own factory.
func (k *Kube) informers() ([]informers.SharedInformerFactory, []informer) {
	factory := func(tweak func(*metav1.ListOptions)) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithTweakListOptions(tweak))
	}
	services := factory(func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = serviceSelector, serviceFields })
	slices := factory(func(o *metav1.ListOptions) { o.LabelSelector = sliceSelector })
	nodes := factory(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, k.node).String()
	})
	all := []informer{
		{
			informer: services.Core().V1().Services().Informer(),
			set:      func(o any) (Event, bool) { s, ok := o.(*corev1.Service); return ServiceSet{s}, ok },
			gone:     func(n types.NamespacedName) Event { return ServiceGone{n} },
		},
		{
			informer: slices.Discovery().V1().EndpointSlices().Informer(),
			set:      func(o any) (Event, bool) { s, ok := o.(*discoveryv1.EndpointSlice); return SliceSet{s}, ok },
			gone:     func(n types.NamespacedName) Event { return SliceGone{n} },
		},
		{
			informer: nodes.Core().V1().Nodes().Informer(),
			set:      func(o any) (Event, bool) { n, ok := o.(*corev1.Node); return NodeSet{n}, ok },
			gone:     func(n types.NamespacedName) Event { return NodeGone{n.Name} },
		},
	}
	return []informers.SharedInformerFactory{services, slices, nodes}, all
}

// handlerOf delivers one informer's changes.
func handlerOf(i informer, deliver func([]Event)) cache.ResourceEventHandlerFuncs {
	set := func(obj any) {
		if e, ok := i.set(obj); ok {
			deliver([]Event{e})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: set,
		UpdateFunc: func(before, now any) {
			// A relist after a lost watch repeats what has not changed.
			if a, ok := before.(metav1.Object); ok {
				if b, ok := now.(metav1.Object); ok && a.GetResourceVersion() == b.GetResourceVersion() && a.GetResourceVersion() != "" {
					return
				}
			}
			set(now)
		},
		DeleteFunc: func(obj any) {
			// The key of a tombstone is right even where its object is stale.
			key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
			if err != nil {
				return
			}
			namespace, name, err := cache.SplitMetaNamespaceKey(key)
			if err != nil {
				return
			}
			deliver([]Event{i.gone(types.NamespacedName{Namespace: namespace, Name: name})})
		},
	}
}

// trim drops what the model has no use for before the informer stores it: most
// of an object's bytes.
func trim(obj any) (any, error) {
	o, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(nil)
	o.SetAnnotations(nil)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
	switch o := obj.(type) {
	case *corev1.Service:
		o.Labels = keep(o.Labels, proxyNameLabel)
		o.Spec.Selector = nil
		o.Status.Conditions = nil
	case *discoveryv1.EndpointSlice:
		o.Labels = keep(o.Labels, discoveryv1.LabelServiceName, corev1.IsHeadlessService)
		for i := range o.Endpoints {
			e := &o.Endpoints[i]
			e.TargetRef, e.Hostname, e.DeprecatedTopology = nil, nil, nil
		}
	case *corev1.Node:
		o.Labels = keep(o.Labels, corev1.LabelTopologyZone)
		o.Status = corev1.NodeStatus{Addresses: o.Status.Addresses}
	}
	return obj, nil
}

// keep returns only these labels.
func keep(labels map[string]string, names ...string) map[string]string {
	var out map[string]string
	for _, n := range names {
		if v, ok := labels[n]; ok {
			if out == nil {
				out = make(map[string]string, len(names))
			}
			out[n] = v
		}
	}
	return out
}
