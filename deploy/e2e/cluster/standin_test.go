package cluster

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// standIns replace the real programs, which other packages test. They read the same flags and files,
// and run until killed.
var standIns = map[string]func(flags map[string]string) error{
	"etcd": standInEtcd, "kube-apiserver": serveAPI, controllerManager: useAPI, scheduler: useAPI,
}

// The forms are --name value, --name=value and --name.
func parseFlags(args []string) map[string]string {
	flags := map[string]string{}
	for i, arg := range args {
		name, ok := strings.CutPrefix(arg, "--")
		if !ok {
			continue
		}
		name, value, found := strings.Cut(name, "=")
		if !found && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			value = args[i+1]
		}
		flags[name] = value
	}
	return flags
}

// broken is a file beside etcd's data that makes etcd fail, and the API server unready.
const broken = "broken"

func standInEtcd(flags map[string]string) error {
	if _, err := os.Stat(filepath.Join(filepath.Dir(flags["data-dir"]), broken)); err == nil {
		return errors.New("the disk is full")
	}
	select {}
}

func serveAPI(flags map[string]string) error {
	f, err := os.Open(flags["token-auth-file"])
	if err != nil {
		return err
	}
	reader := csv.NewReader(f)
	reader.FieldsPerRecord = -1
	tokens, err := reader.ReadAll()
	if err != nil {
		return err
	}
	users := map[string]string{}
	for _, t := range tokens {
		users["Bearer "+t[0]] = t[1]
	}
	_, err = os.Stat(filepath.Join(filepath.Dir(flags["token-auth-file"]), broken))
	ready := err != nil
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := users[r.Header.Get("Authorization")]
		switch {
		case user == "":
			http.Error(w, "unauthorized", http.StatusUnauthorized)
		case !ready:
			http.Error(w, "etcd is not ready", http.StatusInternalServerError)
		case r.URL.Path == "/readyz":
			fmt.Fprint(w, user)
		default:
			giveToken(w, r)
		}
	})
	return http.ListenAndServeTLS(net.JoinHostPort(flags["bind-address"], flags["secure-port"]), flags["tls-cert-file"], flags["tls-private-key-file"], handler)
}

func giveToken(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	request, ok := object.(*authenticationv1.TokenRequest)
	if err != nil || !ok {
		http.Error(w, fmt.Sprintf("%v %v", kind, err), http.StatusBadRequest)
		return
	}
	request.Status.Token = fmt.Sprintf("%s for %d s", r.URL.Path, *request.Spec.ExpirationSeconds)
	request.SetGroupVersionKind(*kind)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(request) // the client notices
}

// useAPI prints the user that the API server sees.
func useAPI(flags map[string]string) error {
	config, err := clientcmd.BuildConfigFromFlags("", flags["kubeconfig"])
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	answer, err := client.Get(config.Host + "/readyz")
	if err != nil {
		return err
	}
	var user strings.Builder
	_ = answer.Write(&user) // the test reads what came
	fmt.Printf("answer: %q\n", user.String())
	select {}
}
