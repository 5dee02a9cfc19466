async (...values) => (await import(new URL('MODULE', document.baseURI))).NAME(...ARGUMENTS, ...values)
