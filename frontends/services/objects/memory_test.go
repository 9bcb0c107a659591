package objects

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weft-proxy/weft/frontends/services/model"
)

// managed is the managedFields entry of the endpoint slice controller.
const managed = `{"f:addressType":{},"f:endpoints":{},"f:metadata":{"f:annotations":{".":{},"f:endpoints.kubernetes.io/last-change-trigger-time":{}},` +
	`"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:endpointslice.kubernetes.io/managed-by":{},"f:kubernetes.io/service-name":{}},` +
	`"f:ownerReferences":{".":{},"k:{\"uid\":\"5b0a6b1f-6f0a-4c52-9a42-0a0f6d0c9d11\"}":{}}},"f:ports":{}}`

// fullSlice returns an EndpointSlice as the API server sends it. It is decoded from
// protobuf, so that no two slices share a string.
func fullSlice(t testing.TB, n, endpoints int) *discoveryv1.EndpointSlice {
	t.Helper()
	owner, name, port := fmt.Sprint("service-", n), "http", int32(8080)
	protocol, yes, no := corev1.ProtocolTCP, true, false
	when := metav1.NewTime(time.Unix(1_700_000_000, 0))
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: owner + "-x7k2p", GenerateName: owner + "-", Namespace: fmt.Sprint("team-", n%50),
			UID: types.UID(fmt.Sprintf("9d4a7c1e-0000-4000-8000-%012d", n)), ResourceVersion: fmt.Sprint(100_000_000 + n), Generation: 7, CreationTimestamp: when,
			Labels:      map[string]string{"app": owner, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io", discoveryv1.LabelServiceName: owner},
			Annotations: map[string]string{corev1.EndpointsLastChangeTriggerTime: "2026-01-02T03:04:05Z"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: owner, UID: "5b0a6b1f-6f0a-4c52-9a42-0a0f6d0c9d11",
				Controller: &yes, BlockOwnerDeletion: &yes}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate,
				APIVersion: "discovery.k8s.io/v1", Time: &when, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(managed)}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	for i := range endpoints {
		at := n*endpoints + i
		node, zone := fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", at%5000/250, at%250), fmt.Sprint("eu-central-1", string(rune('a'+i%3)))
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", 64+at>>16, at>>8&255, at&255)},
			Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
			NodeName:   &node, Zone: &zone,
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: s.Namespace, Name: fmt.Sprintf("%s-7d9f8b6c5d-%05d", owner, at),
				UID: types.UID(fmt.Sprintf("1f2e3d4c-0000-4000-8000-%012d", at))},
		})
	}
	raw, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	out := &discoveryv1.EndpointSlice{}
	if err := out.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	return out
}

// heap returns the bytes that are in use.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkMemory is what 10,000 slices with 10 endpoints each cost a node that
// keeps them whole, trimmed, or in the model. The source keeps only their versions.
func BenchmarkMemory(b *testing.B) {
	const slices, endpoints = 10_000, 10
	cache := func(trimmed bool) (func(*discoveryv1.EndpointSlice), any) {
		kept := make(map[string]any)
		return func(s *discoveryv1.EndpointSlice) {
			if trimmed {
				trimSlice(s)
			}
			kept[s.Namespace+"/"+s.Name] = s
		}, kept
	}
	into := func(m *model.Model) (func(*discoveryv1.EndpointSlice), any) {
		return func(o *discoveryv1.EndpointSlice) { m.SetSlice(trimSlice(o)) }, m
	}
	for _, tt := range []struct {
		name string
		open func() (take func(*discoveryv1.EndpointSlice), kept any)
	}{
		{"whole", func() (func(*discoveryv1.EndpointSlice), any) { return cache(false) }},
		{"trimmed", func() (func(*discoveryv1.EndpointSlice), any) { return cache(true) }},
		{"model", func() (func(*discoveryv1.EndpointSlice), any) { return into(model.New(model.Config{})) }},
	} {
		b.Run(tt.name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				take, kept := tt.open()
				for n := range slices {
					take(fullSlice(b, n, endpoints))
				}
				b.ReportMetric((heap()-before)/(1<<20), "MiB")
				runtime.KeepAlive(kept)
				runtime.KeepAlive(take)
			}
		})
	}
}
