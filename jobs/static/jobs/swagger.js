// Shows the API's document with Swagger UI. Requests use the session of the admin.
(() => {
  const place = document.getElementById("swagger");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
  follow();
  dark.addEventListener("change", follow);
  window.SwaggerUIBundle({
    domNode: place,
    url: place.dataset.document,
    deepLinking: true,
    // Nothing is sent to a validator on another server.
    validatorUrl: null,
    requestInterceptor: (request) => {
      request.headers["X-CSRFToken"] = place.dataset.csrf;
      return request;
    },
  });
})();
