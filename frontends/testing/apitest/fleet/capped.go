package main

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// capped returns the reflector backoff of commit 238984c: finally 1.5 s to 3 s.
func capped() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 1500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10}
}

// followCapped is a node of commit 238984c: four reflectors with separate backoffs.
func followCapped(ctx context.Context, name string, dial dial) error {
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: frontURL, Dial: dial, QPS: 5, Burst: 10, //nolint:mnd // the limits of kube-proxy
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf},
	})
	if err != nil {
		return err
	}
	logger := klog.FromContext(ctx)
	var all sync.WaitGroup
	for _, k := range []struct {
		group          rest.Interface
		resource       string
		object         runtime.Object
		labels, fields string
	}{
		{client.CoreV1().RESTClient(), "services", &corev1.Service{}, serviceLabels, serviceFields},
		{client.DiscoveryV1().RESTClient(), "endpointslices", &discoveryv1.EndpointSlice{}, sliceLabels, ""},
		{client.CoreV1().RESTClient(), "nodes", &corev1.Node{}, "", nodeField + name},
		{client.NetworkingV1().RESTClient(), "servicecidrs", &networkingv1.ServiceCIDR{}, "", ""},
	} {
		requests := cache.NewFilteredListWatchFromClient(k.group, k.resource, metav1.NamespaceAll, func(o *metav1.ListOptions) {
			o.LabelSelector, o.FieldSelector = k.labels, k.fields
		})
		r := cache.NewReflectorWithOptions(requests, k.object, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
			Name: k.resource, Logger: &logger, Backoff: capped(),
		})
		all.Go(func() { r.RunWithContext(ctx) })
	}
	all.Wait()
	return nil
}
