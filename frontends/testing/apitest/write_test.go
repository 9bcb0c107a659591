package apitest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// What a client of the API writes is what it reads, in JSON and in protobuf.
func TestWrite(t *testing.T) {
	for _, content := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		t.Run(content, func(t *testing.T) {
			server := apitest.New(t)
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL(), ContentConfig: rest.ContentConfig{ContentType: content}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, services := t.Context(), client.CoreV1().Services("a")
			names := func() (out []string) {
				t.Helper()
				list, err := services.List(ctx, metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range list.Items {
					out = append(out, s.Namespace+"/"+s.Name+" "+s.Spec.ClusterIP)
				}
				return out
			}
			made, err := services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}}, metav1.CreateOptions{})
			if err != nil || made.ResourceVersion == "" {
				t.Fatalf("create: %v, version %q", err, made.ResourceVersion)
			}
			if got := names(); len(got) != 1 || got[0] != "a/x 10.0.0.1" {
				t.Errorf("after create: %v", got)
			}
			made.Spec.ClusterIP = "10.0.0.2"
			changed, err := services.UpdateStatus(ctx, made, metav1.UpdateOptions{})
			if err != nil || changed.ResourceVersion == made.ResourceVersion {
				t.Fatalf("update: %v, version %q as before", err, changed.ResourceVersion)
			}
			if got := names(); len(got) != 1 || got[0] != "a/x 10.0.0.2" {
				t.Errorf("after update: %v", got)
			}
			if _, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{}); err != nil {
				t.Errorf("create of an object without a namespace: %v", err)
			}
			if got, err := services.Get(ctx, "x", metav1.GetOptions{}); err != nil || got.ResourceVersion != changed.ResourceVersion {
				t.Errorf("get: %v, version %q, want %q", err, got.ResourceVersion, changed.ResourceVersion)
			}
			if err := services.Delete(ctx, "x", metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			if got := names(); len(got) != 0 {
				t.Errorf("after delete: %v", got)
			}
			if _, err := services.Get(ctx, "x", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("get of what is gone: %v", err)
			}
		})
	}
}
