package objects

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

// TestRightsAreEnough compares the requests to the API with the rights in the
// manifest, which are limited to reading and to events.
func TestRightsAreEnough(t *testing.T) {
	content, err := os.ReadFile("../../../deploy/kubernetes/split/rbac.yaml")
	must(t, err)
	rights := make(map[string][]string)
	for _, doc := range strings.Split(string(content), "\n---\n") {
		var role rbacv1.ClusterRole
		must(t, yaml.Unmarshal([]byte(doc), &role))
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				rights[resource] = append(rights[resource], rule.Verbs...)
			}
		}
	}
	for resource, verbs := range rights {
		for _, v := range verbs {
			read := v == "get" || v == "list" || v == "watch"
			if write := resource == "events" && (v == "create" || v == "patch"); !read && !write {
				t.Errorf("the manifest gives %s of %s", v, resource)
			}
		}
	}
	api := apitest.New(t)
	// A server without streamed lists is asked for both.
	api.Fault(func(q apitest.Request) apitest.Fault {
		if q.Verb == "stream" {
			return apitest.Fault{Status: http.StatusUnprocessableEntity}
		}
		return apitest.Fault{}
	})
	follow(t, api).awaitServices(t)
	for _, resource := range []string{"services", "endpointslices", "nodes", "servicecidrs"} {
		for _, q := range api.Requests(resource) {
			verb := q.Verb
			if verb == "stream" {
				verb = "watch"
			}
			if !slices.Contains(rights[resource], verb) {
				t.Errorf("%s of %s is not among the rights %v", verb, resource, rights[resource])
			}
		}
	}
}
